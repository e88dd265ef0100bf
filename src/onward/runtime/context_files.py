"""Context files: AGENTS.md from the repository's root down to the session's directory, logged when they enter.

Each is a message that the model sees, with where it came from and what it was. It is logged once; again when it has
changed, is gone, or is no longer on the surface.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from onward.errors import ToolFailed
from onward.model.event import APPEND, MAIN, Draft, Event, given
from onward.runtime.placed import placed
from onward.runtime.tools.paths import place, read_bytes
from onward.session import Session

NAME = "AGENTS.md"
KIND = "context-file"

SHOWN = 32 * 1024
"""Bytes of a file that the model is shown: about 8,000 tokens."""

LARGEST = 1024 * 1024
"""Bytes of a file that is looked at; a larger one is refused."""

GONE = "gone"
LEADS_OUT = "it is a link to outside of the repository."


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A context file as it is now.

    Attributes:
        path: relative to the repository's root.
        state: `sha256:` and the digest of its content; `refused:` and why; or `gone`.
        text: what the model is shown of it.
        size: bytes.
    """

    path: str
    state: str
    text: str = ""
    size: int = 0


def log_context_files(session: Session) -> list[Event]:
    """Log the context files of a session's directory that are new or have changed; nothing where there is none.

    Returns:
        The custom/message events that were logged.

    Raises:
        Refused, StorageFailed, LeaseLost: they cannot be logged.
    """
    cwd = given(session.header.cwd)
    if cwd is None:
        return []
    drafts = plan(find(Path(cwd)), known(placed(session)), session.branch)
    return session.append(*drafts) if drafts else []


def find(cwd: Path) -> list[ContextFile]:
    """The context files from the root of the repository that a directory is in down to it; without one, its own."""
    try:
        home = Path(cwd).resolve(strict=True)
    except OSError:
        return []
    above = (home, *home.parents)
    root = next((at for at in above if os.path.lexists(at / ".git")), home)
    names = home.relative_to(root).parts
    found = (_look(root, "/".join((*names[:depth], NAME))) for depth in range(len(names) + 1))
    return [file for file in found if file is not None]


def known(messages: Sequence[Event]) -> dict[str, str]:
    """Path -> state of the context files that the model sees now."""
    states: dict[str, str] = {}
    for event in messages:
        if event.type == "custom/message" and event.data.get("kind") == KIND:
            data = event.data.get("data")
            if isinstance(data, dict) and isinstance(data.get("path"), str):
                states[data["path"]] = _state(data)
    return states


def plan(found: Sequence[ContextFile], seen: Mapping[str, str], branch: str = MAIN) -> list[Draft]:
    """The messages for what the model has not seen as it is. Pure."""
    drafts = [_draft(file, seen.get(file.path), branch) for file in found if seen.get(file.path) != file.state]
    here = {file.path for file in found}
    gone = [path for path, state in seen.items() if path not in here and state != GONE]
    return [*drafts, *(_draft(ContextFile(path, GONE), seen[path], branch) for path in gone)]


def _look(root: Path, path: str) -> ContextFile | None:
    if not os.path.lexists(root / path):
        return None
    try:
        data = read_bytes(place(root, path), limit=LARGEST)
    except ToolFailed as error:
        leads_out = (root / path).is_symlink() and "outside" in error.message
        return ContextFile(path, f"refused:{LEADS_OUT if leads_out else error.message}")
    shown = data[:SHOWN].decode("utf-8", "replace" if len(data) <= SHOWN else "ignore")
    if len(data) > SHOWN:
        shown = shown[: shown.rfind("\n") + 1] or shown
        shown += f"\n[cut: this is the beginning of {len(data):,} bytes; read the file for the rest]"
    return ContextFile(path, f"sha256:{sha256(data).hexdigest()}", shown.strip(), len(data))


def _state(data: Mapping[str, Any]) -> str:
    if isinstance(data.get("sha256"), str):
        return f"sha256:{data['sha256']}"
    return GONE if data.get("gone") is True else f"refused:{data.get('refused')}"


def _draft(file: ContextFile, before: str | None, branch: str) -> Draft:
    data: dict[str, Any] = {"path": file.path}
    kind, _, value = file.state.partition(":")
    folder = os.path.dirname(file.path)  # noqa: PTH120
    scope = f"below {folder}/ of this repository" if folder else "in this repository"
    match kind:
        case "sha256":
            data |= {"sha256": value, "bytes": file.size}
            again = " It has changed: this takes the place of what it said before." if before is not None else ""
            text = f"Instructions for work {scope}, from its file {file.path}.{again}\n\n{file.text or '(it is empty)'}"
        case "refused":
            data["refused"] = value
            text = f"{file.path}, with instructions for work {scope}, was not read: {value}"
        case _:
            data["gone"] = True
            text = f"{file.path} is gone: what it said no longer holds."
    message = {"role": "user", "blocks": [{"type": "text", "text": text}]}
    return Draft(
        type="custom/message",
        data={"message": message, "kind": KIND, "display": False, "data": data},
        surface=APPEND,
        branch=None if branch == MAIN else branch,
    )
