"""A transcript as Markdown, for people. Out only: states, branches and the bytes of images do not come back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from onward.formats.exporting import Exported
from onward.formats.protocol import Loss
from onward.model.text import one_line, utc, visible
from onward.model.transcript import Entry
from onward.reading import View

NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^( {0,3})(#{1,6}(?:\s|$)|-+\s*$|=+\s*$)")


def to_markdown(view: View) -> Exported:
    """The transcript of a view's path as Markdown.

    What people said stands as text; results of tools and other people's headings are fenced or escaped, so that
    nothing in a session can end its own section. Control characters are made visible.
    """
    entries = [entry for entry in view.transcript() if entry.state != "log-only"]
    text = "\n".join(_page(view, entries)).rstrip("\n") + "\n"
    data = text.encode()
    loss = [Loss(None, "a transcript for people cannot be imported again")]
    skipped = sum(1 for _ in view.path) - len(entries)
    if skipped:
        loss.append(Loss(None, f"{skipped} nodes that are no messages or that stand for others"))
    others = [name for name in view.branches() if name != view.branch]
    if others:
        loss.append(Loss(None, f"other branches: {', '.join(others)}"))
    return Exported("markdown", data, data.count(b"\n"), loss)


def _page(view: View, entries: list[Entry]) -> Iterator[str]:
    header = view.header
    yield f"# {_escaped(one_line(view.title or f'Session {view.id}', 200))}"
    yield ""
    yield f"- session: `{view.id}`, branch `{view.branch}`"
    yield f"- created: {_moment(header.created)}"
    if isinstance(header.cwd, str):
        yield f"- directory: {_code(header.cwd)}"
    labels = view.labels()
    for entry in entries:
        yield ""
        name = NAMES.get(entry.role or "", entry.type)
        tool = "" if entry.tool is None else f" {_code(entry.tool)}"
        label = "" if entry.seq not in labels else f" — {_escaped(one_line(labels[entry.seq], 80))}"
        yield f"## {name}{tool} · #{entry.seq}{label}"
        yield ""
        mark = "" if entry.state == "current" else " · the model no longer sees this"
        yield f"*{_moment(entry.time)}{mark}*"
        yield ""
        yield _fenced(entry.text) if entry.role == "tool" else _contained(entry.text)


def _moment(milliseconds: int) -> str:
    return utc(milliseconds, "%Y-%m-%d %H:%M:%S UTC")


def _code(text: str) -> str:
    shown = one_line(text, 200).replace("`", "'")
    return f"`{shown}`"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", text)


def _fenced(text: str) -> str:
    """Text as a code block whose fence is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{visible(text)}\n{fence}"


def _contained(text: str) -> str:
    """Text whose headings and rules are escaped outside its code blocks, and whose last code block is closed."""
    lines = []
    fence = ""
    for line in visible(text).strip("\n").split("\n"):
        found = _FENCE.match(line)
        if not fence:
            fence = found[1] if found else ""
            line = line if found else _HEADING.sub(r"\1\\\2", line)
        elif found and found[1].startswith(fence) and not line.strip(" `~"):
            fence = ""
        lines.append(line)
    return "\n".join([*lines, fence] if fence else lines)
