"""What git knows of a checkout, asked in a way in which a hostile repository runs nothing: no hooks, filters, pagers,
monitors or transports, no locks, nothing of the environment or of the user's configuration.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection

SECONDS = 20.0
"""For one question."""

LARGEST = 4 << 20
"""Bytes of a blob that is fetched, for a diff."""

_SAFE = (
    "--no-optional-locks",
    "--no-pager",
    "--no-replace-objects",
    "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.untrackedCache=false",
    "-c", "protocol.allow=never",
)  # fmt: skip


def environment() -> dict[str, str]:
    """The environment that git runs in."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_ATTR_NOSYSTEM": "1",
    }


def _ask(root: str, *arguments: str, given: bytes = b"") -> bytes | None:
    """Git's answer, or None where there is no git, no repository, none that git trusts, or none in time."""
    command = ["git", "-C", root, *_SAFE, *arguments]
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, timeout=SECONDS, env=environment(), check=False
        )
    except (FileNotFoundError, PermissionError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def paths_of(root: str, blobs: Collection[str]) -> dict[str, list[str]]:
    """Where git's index has blobs: id -> paths relative to `root`, at most a hundred each. Empty without git."""
    answer = _ask(root, "ls-files", "-s", "-z", "--", ".") if blobs else None
    out: dict[str, list[str]] = {}
    if answer is None:
        return out
    wanted = {blob.encode() for blob in blobs}
    for row in answer.split(b"\0"):
        entry, tab, path = row.partition(b"\t")
        fields = entry.split(b" ")
        if tab and len(fields) == 3 and fields[1] in wanted:
            found = out.setdefault(fields[1].decode(), [])
            if len(found) < 100:
                found.append(os.fsdecode(path))
    return out


def blob(root: str, id_: str) -> bytes | None:
    """The bytes of a blob that the repository has; None where it has not, or where they are more than `LARGEST`."""
    if not id_ or set(id_) - set("0123456789abcdef"):
        return None
    looked = _ask(root, "cat-file", "--batch-check", given=id_.encode() + b"\n")
    fields = [] if looked is None else looked.split()
    if len(fields) != 3 or fields[1] != b"blob" or int(fields[2]) > LARGEST:
        return None
    return _ask(root, "cat-file", "blob", id_)
