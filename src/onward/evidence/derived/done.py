"""`Done`: a call and what it gave back, as the readers see it; and the observations that they make of it."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from onward.evidence.observation import Absent, Action, Fingerprint, Observation, Subject, SubjectKind, Unverifiable

_MISSING = re.compile(
    r"no such file or directory|there is no such file|file does not exist|(?:file|path|directory) not found"
    r"|does not exist\b|\bENOENT\b|: not found$",
    re.IGNORECASE,
)
SHORT = 600
"""Characters of an error among which the reason is looked for."""


@dataclass(frozen=True, slots=True)
class Done:
    """A call that has a result.

    Attributes:
        seq: of the result.
        call_id: of the call.
        name: the tool's, as recorded.
        arguments: as recorded; where they did not parse, or are one text, `{"input": text}`.
        text: what the result says.
        failed: the result says that the call failed.
        code: a word for what went wrong, where it is known.
        meta: what the tool or its program says besides.
        blocks: the result's content.
        call: seq of the call's `tool/call`.
        cwd: the directory that the call was made from, where it is not the session's own.
        home: the session's own directory.
    """

    seq: int
    call_id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    failed: bool = False
    code: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    blocks: tuple[dict[str, Any], ...] = ()
    call: int | None = None
    cwd: str | None = None
    home: str | None = None

    def said(self, *names: str) -> str | None:
        """The first of these arguments that is a text."""
        return next((value for name in names if isinstance(value := self.arguments.get(name), str)), None)

    def number(self, *names: str) -> int | None:
        """The first of these arguments that is a whole number, also as text or with a fraction of nothing."""
        return next((found for name in names if (found := integer(self.arguments.get(name))) is not None), None)

    @property
    def path(self) -> str | None:
        """The file or directory that the call names."""
        said = self.said("file_path", "path", "notebook_path", "filePath", "filename") or None
        # Pi takes an `@` off, as people write it before files. Of `toolUseResult` and `dsh` the others have one.
        pi = said is not None and "path" in self.arguments and not {"toolUseResult", "dsh"} & self.meta.keys()
        return said.removeprefix("@") or None if said is not None and pi else said

    @property
    def told(self) -> dict[str, Any]:
        """What Claude Code kept of the result besides its text."""
        return mapping(self.meta.get("toolUseResult"))

    @property
    def where(self) -> str | None:
        """The directory that the call was made from."""
        return self.cwd or self.home

    def of(
        self,
        kind: SubjectKind,
        address: str,
        then: Fingerprint,
        *,
        action: Action = "looked",
        method: str | None = None,
        cwd: str | None = None,
        to: str | None = None,
    ) -> Observation:
        """An observation that rests on this call."""
        return Observation(
            seq=self.seq,
            subject=Subject(kind, address, cwd or self.cwd),
            action=action,
            method=method or self.name,
            then=then,
            call_id=self.call_id,
            call=self.call,
            to=to,
            derived=True,
        )

    def unknown(
        self, kind: SubjectKind, address: str, reason: str, *, action: Action = "looked", cwd: str | None = None
    ) -> Observation:
        """One that says no more than that it happened."""
        digest = sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()
        return self.of(kind, address, Unverifiable(reason, digest), action=action, cwd=cwd)

    def missing(self, kind: SubjectKind = "file") -> list[Observation]:
        """Of a call that failed: that what it names was not there, if that is plainly why. Else nothing."""
        path = self.path
        if path is None or not (self.code == "FS_NOT_FOUND" or is_missing(self.text)):
            return []
        return [self.of(kind, path, Absent())]


def is_missing(error: str) -> bool:
    """Whether an error says that there is no such file."""
    return _MISSING.search(error[:SHORT].rstrip()) is not None


def mapping(value: Any) -> dict[str, Any]:
    """An object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def integer(value: Any) -> int | None:
    """A whole number that a model or a program gave as number or text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else None
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"-?[0-9]{1,15}", value) else None
    return value if isinstance(value, int) else None


def relative(path: str, base: str, where: str | None) -> str:
    """A path below a directory as it is called from there; as it is where it is not below it.

    Args:
        path: absolute, or relative to `where`.
        base: the directory: absolute, or relative to `where`.
        where: the directory that both were meant from.
    """
    full, top = (posixpath.normpath(posixpath.join(where or "/", one)) for one in (path, base))
    if full == top:
        return "."
    prefix = top.rstrip("/") + "/"
    return full[len(prefix) :] + ("/" if path.endswith("/") else "") if full.startswith(prefix) else path
