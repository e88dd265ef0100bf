"""Fingerprints from what tools take and give: bytes, numbered lines, edits."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha1, sha256

from onward.evidence.observation import Excerpt, Lines, Whole

KEEP = 256 * 1024
"""Bytes of a file whose text is kept beside its digest, so that a diff can be shown later."""

PIECE = 128 * 1024
"""Characters of a replaced piece up to which it is looked at where it sticks out of a text."""

HEAD = 200
"""Characters at an end of a text by which the places are found where a piece may stick out of it there."""

TRIED = 64
"""Places of those that are tried; of a text that repeats itself more often, the farthest out."""

EDITS = 100
"""New pieces of one edit that are looked for; of more, the last."""


def git_blob(data: bytes, *, algorithm: str = "sha1") -> str:
    """Git's id of a blob with these bytes, hex. `algorithm`: `sha1`, or `sha256` for a repository of that kind.

    Source: the object format in git's documentation (gitformat-pack, "hash function transition").
    """
    maker = sha1 if algorithm == "sha1" else sha256
    return maker(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def is_blob(data: bytes, id_: str) -> bool:
    """Whether an id is git's of a blob with these bytes, in a repository of either kind."""
    return git_blob(data, algorithm="sha1" if len(id_) == 40 else "sha256") == id_


def of_bytes(data: bytes, *, mtime: int | None = None, keep: int = KEEP) -> Whole:
    """A file whose bytes are all known; its text is kept where it is UTF-8 and has at most `keep` bytes."""
    text = None
    if len(data) <= keep:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = None
    return Whole(sha256(data).hexdigest(), git_blob(data), len(data), text, mtime)


def of_lines(
    lines: Sequence[str],
    first: int | None = 1,
    *,
    ends: bool = False,
    of: int | None = None,
    cut: Sequence[int] = (),
) -> Lines:
    """A reading of some lines that follow each other.

    Args:
        lines: without line ends. None at all = an empty file, if `ends`.
        first: the number of the first, from 1; None = unknown.
        ends: the last one is the file's last.
        of: lines of the whole file.
        cut: which (from 0) are known by their beginning only.
    """
    parts = (Excerpt("\n".join(lines), first, tuple(cut)),) if lines else ()
    return Lines(parts, ends=ends, of=of)


def of_edit(pairs: Sequence[tuple[str, str]]) -> Lines:
    """What is known of a file after pieces of text in it were replaced: (old, new), in this order.

    A new piece that a later pair takes out again, or overlaps, is not known to be there.
    """
    new = [text for _, text in pairs]
    start = max(len(new) - EDITS, 0)
    shown = [
        Excerpt(text, snippet=True)
        for number, text in enumerate(new[start:], start)
        if text and not any(overlap(text, old) for old, _ in pairs[number + 1 :])
    ]
    return Lines(tuple(shown), replaced=tuple(dict.fromkeys(old for old, _ in pairs if old)))


def overlap(text: str, piece: str) -> tuple[int, int] | None:
    """Where a piece that was replaced in a file lay over a text of that file: (start, end) in the text, or None.

    The piece may stick out at either end of the text: then a line of it at least has to lie on it, because a few
    characters agree by chance.
    """
    if not piece or not text:
        return None
    at = text.find(piece)
    if at >= 0:
        return at, at + len(piece)
    if text in piece:
        return 0, len(text)
    if len(piece) > PIECE:
        return None
    return _sticks_out_before(text, piece) or _sticks_out_behind(text, piece)


def _sticks_out_before(text: str, piece: str) -> tuple[int, int] | None:
    """Where the text begins inside the piece: with one of its lines."""
    if f"\n{text[0]}" not in piece:
        return None
    head = text[:HEAD]
    start = piece.find("\n" + head, max(len(piece) - len(text) - 1, 0)) + 1
    for _ in range(TRIED):
        if not start:
            break
        if text.startswith(piece[start:]) and len(piece) - start > 1:
            return 0, len(piece) - start
        start = piece.find("\n" + head, start) + 1
    start = piece.find("\n", max(len(piece) - len(head), 0)) + 1  # the rest of the piece is shorter than the head
    while 0 < start < len(piece) - 1:
        if head.startswith(piece[start:]):
            return 0, len(piece) - start
        start = piece.find("\n", start) + 1
    return None


def _sticks_out_behind(text: str, piece: str) -> tuple[int, int] | None:
    """Where the text ends inside the piece: with one of its lines."""
    if f"{text[-1]}\n" not in piece:
        return None
    foot = text[-HEAD:]
    end = piece.rfind(foot + "\n", 0, len(text) + 1)
    for _ in range(TRIED):
        if end < 0:
            break
        end += len(foot)
        if text.endswith(piece[:end]) and end > 1:
            return len(text) - end, len(text)
        end = piece.rfind(foot + "\n", 0, end)
    end = piece.rfind("\n", 0, len(foot))  # what the piece begins with is shorter than the foot
    while end > 1:
        if foot.endswith(piece[:end]):
            return len(text) - end, len(text)
        end = piece.rfind("\n", 0, end)
    return None
