"""A disk that refuses: full, failing, short writes, failed syncs and cuts, at every single call."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from errno import EIO, ENOSPC
from pathlib import Path
from typing import Any

import pytest

from builders import header
from logs import append, raws, sealed_lines
from onward.errors import AlreadyExists, NotFound, OnwardError, Poisoned, StorageFailed
from onward.log import files
from onward.log.jsonl_backend import JsonlBackend, project_folder

CALLS = (
    "open_", "close", "pread", "write", "pwrite", "lseek", "ftruncate", "stat", "fstat", "rename", "unlink", "mkdir",
    "scandir", "flock", "fsync", "fdatasync",
)  # fmt: skip


class Disk:
    """Stands before the operating system and lets chosen calls fail.

    Attributes:
        calls: names of the calls so far, in order.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.fails: Callable[[int, str], OSError | str | None] = lambda number, name: None
        for name in CALLS:
            # Syncs are counted and fail when told; really doing them would show nothing here.
            real = (lambda fd: None) if name in ("fsync", "fdatasync") else getattr(files, name)
            patch.setattr(files, name, self._wrapped(name, real))

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            number = len(self.calls)
            self.calls.append(name)
            fault = self.fails(number, name)
            if fault == "short":
                return real(args[0], bytes(args[1])[: len(args[1]) // 2], *args[2:])
            if isinstance(fault, OSError):
                if name == "close":
                    real(*args)
                raise fault
            return real(*args, **kwargs)

        return call

    def fail(self, name: str, fault: OSError | str, *, times: int = 1) -> None:
        """Let the next `times` calls of this name fail."""
        left = [times]

        def fails(number: int, called: str) -> OSError | str | None:
            if called != name or not left[0]:
                return None
            left[0] -= 1
            return fault

        self.fails = fails

    def works(self) -> None:
        self.fails = lambda number, name: None


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def backend(tmp_path: Path) -> JsonlBackend:
    return JsonlBackend(tmp_path / "home")


def full() -> OSError:
    return OSError(ENOSPC, "No space left on device")


def failing() -> OSError:
    return OSError(EIO, "Input/output error")


def bytes_of(backend: JsonlBackend) -> bytes:
    path = backend.locate("s1").path
    assert path is not None
    return path.read_bytes()


# --- one fault, one consequence -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [full(), failing(), "short"], ids=["full", "failing", "short"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_write_that_fails_leaves_nothing_and_the_writer_goes_on(disk: Disk, backend: JsonlBackend, fault, count: int):
    writer = backend.create(header())
    lines = append(writer)
    before, head = bytes_of(backend), writer.head()
    disk.fail("write", fault)
    with pytest.raises(StorageFailed) as error:
        append(writer, count)
    assert type(error.value) is StorageFailed
    assert bytes_of(backend) == before and writer.head() == head
    lines += append(writer, count)
    assert raws(backend.reader("s1")) == lines


def test_a_full_disk_is_called_that(disk: Disk, backend: JsonlBackend):
    writer = backend.create(header())
    disk.fail("write", full())
    with pytest.raises(StorageFailed, match="No space left") as error:
        append(writer)
    assert error.value.hint is not None and "free some space" in error.value.hint


def test_a_short_write_that_cannot_be_taken_back_poisons_and_the_next_open_sets_it_aside(
    disk: Disk, backend: JsonlBackend
):
    writer = backend.create(header())
    lines = append(writer)
    disk.fails = lambda number, name: {"write": "short", "ftruncate": failing()}.get(name)
    with pytest.raises(Poisoned):
        append(writer)
    disk.works()
    left = bytes_of(backend)
    for use in (lambda: append(writer), writer.sync, writer.head, lambda: writer.truncate(0), lambda: raws(writer)):
        with pytest.raises(Poisoned):
            use()
    assert bytes_of(backend) == left
    writer.close()
    writer = backend.writer("s1", floor=0)
    assert writer.torn is not None and raws(writer) == lines


@pytest.mark.parametrize("call", ["fdatasync", "fsync"])
def test_a_failed_sync_poisons_the_writer_and_leaves_the_file_alone(disk: Disk, backend: JsonlBackend, call: str):
    writer = backend.create(header())
    lines = append(writer)
    left = bytes_of(backend)
    disk.fail(call, failing())
    with pytest.raises(Poisoned):
        writer.sync()
    for use in (writer.sync, lambda: append(writer), writer.head):
        with pytest.raises(Poisoned):
            use()
    assert bytes_of(backend) == left
    writer.close()
    assert raws(backend.writer("s1", floor=0)) == lines


def test_a_failed_sync_of_an_append_that_always_syncs_poisons(disk: Disk, backend: JsonlBackend):
    writer = backend.create(header(), sync="always")
    append(writer)
    disk.fail("fdatasync", failing())
    with pytest.raises(Poisoned):
        append(writer)
    writer.close()
    assert len(raws(backend.writer("s1", floor=0))) == 2


def test_a_failed_cut_by_request_poisons(disk: Disk, backend: JsonlBackend):
    writer = backend.create(header())
    lines = append(writer, 3)
    disk.fail("ftruncate", failing())
    with pytest.raises(Poisoned):
        writer.truncate(1)
    writer.close()
    assert raws(backend.writer("s1", floor=0)) == lines


def test_an_interrupt_between_write_and_acknowledgement_takes_the_write_back(disk: Disk, backend: JsonlBackend):
    writer = backend.create(header())
    lines = append(writer)
    disk.fails = lambda number, name: (_ for _ in ()).throw(KeyboardInterrupt()) if name == "lseek" else None
    with pytest.raises(KeyboardInterrupt):
        append(writer)
    disk.works()
    assert raws(backend.reader("s1")) == lines
    lines += append(writer)
    assert raws(backend.reader("s1")) == lines


def test_a_blob_that_cannot_be_stored_or_synced_is_not_lost_sight_of(disk: Disk, backend: JsonlBackend):
    backend.create(header())
    blobs = backend.blobs("s1")
    for call in ("write", "rename"):
        disk.fail(call, full())
        with pytest.raises(StorageFailed):
            blobs.put(b"data")
    name = blobs.put(b"data")
    disk.fail("fsync", failing())
    with pytest.raises(StorageFailed):
        blobs.sync()
    disk.works()
    disk.calls.clear()
    blobs.sync()
    assert disk.calls.count("fsync") == 3 and blobs.get(name) == b"data"


# --- any fault, any call ------------------------------------------------------------------------------------------


class Scene:
    """What a program does with a session, until something fails. `acknowledged` is what it was told is kept."""

    def __init__(self, backend: JsonlBackend, home: Path) -> None:
        self.backend = backend
        self.home = home
        self.acknowledged: list[bytes] = []
        self.blobs: list[str] = []
        self.dropped: list[str] = []

    def play(self) -> None:
        writer = self.backend.create(header())
        try:
            self.acknowledged += append(writer, 2)
            writer.sync()
            blobs = self.backend.blobs("s1")
            name = blobs.put(b"x" * 100)
            blobs.sync()
            self.blobs.append(name)
            self.acknowledged += append(writer)
            self.dropped.append(self.backend.inbox("s1").drop(b"{}", time=1))
            inbox = self.backend.inbox("s1")
            for name, _, _ in inbox.pending():
                self.acknowledged += append(writer)
                writer.sync()
                self.dropped.remove(name)
                inbox.done(name)
            writer.renumber(7)
            append(writer, 2, text="retracted")
            writer.truncate(len(self.acknowledged))
        finally:
            writer.close()
        with (self.home / "log.jsonl").open("ab") as file:
            file.write(b"torn")
        writer = self.backend.writer("s1", floor=0, take_over=True)
        try:
            self.acknowledged += append(writer)
            writer.sync()
            assert raws(writer) == self.acknowledged
        finally:
            writer.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"))  # noqa: PTH208, PTH112


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["full", "failing", "short"])
def test_whatever_call_fails_the_caller_is_told_and_nothing_acknowledged_is_lost(
    disk: Disk, tmp_path: Path, fault: str
):
    faults: dict[str, Callable[[], OSError | str]] = {"full": full, "failing": failing, "short": lambda: "short"}
    applies = ("write", "pwrite") if fault == "short" else CALLS

    def scene_in(root: Path) -> Scene:
        backend = JsonlBackend(root, guard_wait=0.2)
        return Scene(backend, root / "local" / "sessions" / project_folder(header().project) / "s1")

    scene_in(tmp_path / "undisturbed").play()
    targets = [number for number, name in enumerate(disk.calls) if name in applies]
    assert len(targets) > 8
    gc.collect()
    told, open_before = 0, descriptors()
    for target in targets:
        scene = scene_in(tmp_path / str(target))
        backend = scene.backend
        disk.calls.clear()
        hit: list[str] = []

        def fails(number: int, name: str, target: int = target, hit: list[str] = hit) -> OSError | str | None:
            if number != target or name not in applies:
                return None
            hit.append(name)
            return faults[fault]()

        disk.fails = fails
        failed: OnwardError | None = None
        try:
            scene.play()
        except OnwardError as error:
            failed = error
            told += 1
        disk.works()
        try:
            reader = backend.reader("s1")
        except NotFound:
            assert scene.acknowledged == [] and failed is not None
            backend.create(header()).close()
            reader = backend.reader("s1")
        found = raws(reader)
        assert found[: len(scene.acknowledged)] == scene.acknowledged, (hit, failed)
        if failed is not None and not isinstance(failed, Poisoned):
            assert len(found) - len(scene.acknowledged) in (0, 2), (hit, failed)  # 2: lines about to be retracted
        for name in scene.blobs:
            assert backend.blobs("s1").get(name) == b"x" * 100
        assert {name for name, _, _ in backend.inbox("s1").pending()} >= set(scene.dropped)
        writer = backend.writer("s1", floor=0)
        more = append(writer)
        writer.sync()
        assert raws(writer) == found + more
        with pytest.raises(AlreadyExists):
            backend.create(header())
        writer.close()
        reader.close()
        assert descriptors() <= open_before, hit
    assert told > 4


# --- when things are synced ---------------------------------------------------------------------------------------


def syncs(disk: Disk) -> list[str]:
    return [name for name in disk.calls if name in ("fsync", "fdatasync")]


def test_never_means_never(disk: Disk, backend: JsonlBackend):
    writer = backend.create(header(), sync="never")
    append(writer)
    writer.sync()
    writer.close()
    assert syncs(disk) == []


def test_barrier_syncs_when_asked_and_only_if_there_is_something(disk: Disk, backend: JsonlBackend):
    writer = backend.create(header())
    append(writer)
    append(writer)
    assert syncs(disk) == []
    writer.sync()
    assert syncs(disk)[0] == "fdatasync" and syncs(disk).count("fdatasync") == 1
    disk.calls.clear()
    writer.sync()
    assert syncs(disk) == []
    append(writer)
    writer.sync()
    assert syncs(disk) == ["fdatasync"]


def test_always_syncs_every_append(disk: Disk, backend: JsonlBackend):
    writer = backend.create(header(), sync="always")
    append(writer)
    disk.calls.clear()
    append(writer, 3)
    append(writer)
    assert syncs(disk) == ["fdatasync", "fdatasync"]


def test_the_first_sync_brings_every_new_folder_to_the_disk(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, backend: JsonlBackend, tmp_path: Path
):
    synced: list[Path] = []
    real = files.fsync

    def fsync(fd: int) -> None:
        here = os.fstat(fd)
        synced.extend(path for path in [tmp_path, *tmp_path.rglob("*")] if os.path.samestat(path.stat(), here))
        real(fd)

    monkeypatch.setattr(files, "fsync", fsync)
    writer = backend.create(header())
    writer.sync()
    folder = tmp_path / "home" / "local" / "sessions" / project_folder(header().project) / "s1"
    wanted = [folder, *list(folder.parents)[:5]]
    assert wanted[-1] == tmp_path and synced == wanted
    synced.clear()
    backend.create(header("s2")).sync()
    assert synced == [folder.with_name("s2"), folder.parent]
    synced.clear()
    writer.close()
    backend.writer("s1", floor=0).sync()
    assert synced == [folder, folder.parent]


def test_sixteen_sessions_sync_at_the_same_time(monkeypatch: pytest.MonkeyPatch, backend: JsonlBackend):
    writers = [backend.create(header(f"s{i}")) for i in range(16)]
    for writer in writers:
        writer.sync()
        append(writer)

    # Nobody gets past before all sixteen are in their syncs at once.
    together = threading.Barrier(16, timeout=60)
    monkeypatch.setattr(files, "fdatasync", lambda fd: together.wait())
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda writer: writer.sync(), writers))


def test_readers_in_other_threads_do_not_wait_for_a_sync(monkeypatch: pytest.MonkeyPatch, backend: JsonlBackend):
    writer = backend.create(header())
    lines = append(writer)
    monkeypatch.setattr(files, "fdatasync", lambda fd: time.sleep(0.5))
    with ThreadPoolExecutor(1) as pool:
        syncing = pool.submit(writer.sync)
        time.sleep(0.05)
        assert raws(writer) == lines and not syncing.done()
        syncing.result()


def test_a_lost_lease_is_noticed_by_the_sync_that_follows_the_append(disk: Disk, backend: JsonlBackend):
    writer = backend.create(header(), sync="always")
    append(writer)
    lines = sealed_lines(1, writer.head().hash, start=1)
    taken: list[Any] = []

    def fails(number: int, name: str) -> None:
        if name == "fdatasync" and not taken:
            taken.append(None)
            taken[0] = backend.writer("s1", floor=0, take_over=True)

    disk.fails = fails
    with pytest.raises(OnwardError) as error:
        writer.append(lines)
    assert error.value.code == "lease-lost"
    assert raws(taken[0])[-1:] == lines  # on disk and never acknowledged: as after a crash, it may be there
