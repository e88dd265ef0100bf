"""Where agents keep their sessions on this machine: each format says it, from the environment and the home folder.

Nothing is opened here but Pi's settings; `files_in` lists folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from onward.formats.protocol import Format


class Place(NamedTuple):
    """A folder and what the names of session files anywhere below it begin and end with."""

    folder: Path
    begins: str = ""
    ends: tuple[str, ...] = (".jsonl",)


@runtime_checkable
class Placed(Protocol):
    """A format whose agent keeps its sessions in a known place."""

    def places(self, env: Mapping[str, str], home: Path) -> list[Place]:
        """Where they are for this environment and home folder, whether or not there is anything."""
        ...


class Found(NamedTuple):
    """A file that lies where an agent keeps its sessions."""

    format: str
    path: Path
    size: int
    mtime_ns: int


def find(formats: Sequence[Format], env: Mapping[str, str], home: Path) -> list[Found]:
    """The session files of the agents of a user, oldest change first; empty files are none yet.

    Args:
        formats: whose files.
        env: the environment, for the variables with which agents move their folders.
        home: the user's home folder.
    """
    found: dict[Path, Found] = {}
    for format_ in formats:
        for place in places(format_, env, home):
            for file in files_in(place):
                found.setdefault(file.path, file._replace(format=format_.name))
    return in_order(found.values())


def in_order(found: Iterable[Found]) -> list[Found]:
    """Files as they are imported: oldest change first, those of sub-agents behind those of their sessions."""
    return sorted(found, key=lambda file: (file.path.name.startswith("agent-"), file.mtime_ns, file.path))


def places(format_: Format, env: Mapping[str, str], home: Path) -> list[Place]:
    """The places of a format; none where it has no known one."""
    return format_.places(env, home) if isinstance(format_, Placed) else []


def files_in(place: Place) -> Iterator[Found]:
    """The files of a place, by real path. What cannot be listed has none."""
    for folder, _, names in os.walk(place.folder):
        wanted = [name for name in names if name.startswith(place.begins) and name.endswith(place.ends)]
        real = Path(folder).resolve() if wanted else None
        for name in wanted:
            assert real is not None
            path = real / name
            try:
                path = path.resolve() if path.is_symlink() else path
                stat = path.stat()
            except OSError:
                continue  # gone in this moment, or a link to nowhere
            if stat.st_size:
                yield Found("", path, stat.st_size, stat.st_mtime_ns)


# --- the agents -------------------------------------------------------------------------------------------------


def claude_code(env: Mapping[str, str], home: Path) -> list[Place]:
    """`projects` below `$CLAUDE_CONFIG_DIR`, else below `~/.claude`; sub-agents' files are further below."""
    return [Place((_folder(env.get("CLAUDE_CONFIG_DIR"), home) or home / ".claude") / "projects")]


def codex(env: Mapping[str, str], home: Path) -> list[Place]:
    """`sessions` and `archived_sessions` below `$CODEX_HOME`, else below `~/.codex`."""
    root = _folder(env.get("CODEX_HOME"), home) or home / ".codex"
    return [Place(root / name, "rollout-") for name in ("sessions", "archived_sessions")]


def pi(env: Mapping[str, str], home: Path) -> list[Place]:
    """`sessions` below `$PI_CODING_AGENT_DIR`, else below `~/.pi/agent`, and where Pi was told to keep them instead."""
    root = _folder(env.get("PI_CODING_AGENT_DIR"), home) or home / ".pi" / "agent"
    told = (_folder(env.get("PI_CODING_AGENT_SESSION_DIR"), home), _folder(_pi_setting(root), home))
    return [Place(folder) for folder in (root / "sessions", *told) if folder is not None]


def dsh(env: Mapping[str, str], home: Path) -> list[Place]:
    """`$DSH_SESSIONS`: the Harness is a library, and where it keeps sessions is its application's decision."""
    root = _folder(env.get("DSH_SESSIONS"), home)
    return [] if root is None else [Place(root, "session.", (".jsonl", ".jsonl.zstd"))]


def _pi_setting(root: Path) -> str | None:
    """The setting `sessionDir`; settings that cannot be read say nothing."""
    try:
        settings = msgspec.json.decode((root / "settings.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    told = settings.get("sessionDir") if type(settings) is dict else None
    return told if type(told) is str else None


def _folder(told: str | None, home: Path) -> Path | None:
    """A folder as somebody wrote it: `~` is `home`, and what is relative is from there."""
    if not told:
        return None
    return home if told == "~" else home / told.removeprefix("~/")
