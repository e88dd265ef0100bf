"""What can be said of lines without knowing events: the header's version, a line's seq, the chain. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from onward.errors import Corrupt, FormatUnsupported
from onward.model.event import FORMAT, HASH_TAIL, Header, decode_header, encode, seal, sealed
from onward.model.lossless import guard

LINK = 19
"""Bytes before a line that end the line before it: its hash (16), `"}` and the newline."""

_SEQ = b'{"seq":'
_HASH = b',"hash":"'
_anything = msgspec.json.Decoder()


def seal_header(header: Header) -> tuple[bytes, Header]:
    """The header's line without newline, and the header with its hash.

    Raises:
        NotLossless: something in it is not JSON, e.g. a directory's name that is no Unicode.
    """
    bare = msgspec.structs.replace(header, hash="")
    # The lineage by itself: as a part of the struct a tuple or NaN in it would seem to be a list or null.
    guard(msgspec.to_builtins(msgspec.structs.replace(bare, lineage=msgspec.UNSET)))
    guard(bare.lineage if isinstance(bare.lineage, dict) else None)
    line, digest = seal(encode(bare), b"")
    return line, msgspec.structs.replace(bare, hash=digest.decode())


def header_document(raw: bytes, *, oldest: int = 1, **where: Any) -> dict[str, Any]:
    """The first line (without newline) as a JSON object, of which only type and format version were looked at.

    Raises:
        FormatUnsupported: the format is newer than this program.
        Corrupt: it is no header of a session, or of a version before `oldest`.
    """
    try:
        seen = _anything.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Corrupt(f"the first line is no session header: {error}", line=1, offset=0, **where) from None
    if not isinstance(seen, dict) or seen.get("type") != "session":
        raise Corrupt("the first line is no session header", line=1, offset=0, **where)
    version = seen.get("format")
    if type(version) is not int or version < oldest:
        raise Corrupt("the header does not say its format version", line=1, offset=0, **where)
    if version > FORMAT:
        raise FormatUnsupported(
            f"this log has format {version}; this program reads up to {FORMAT}", hint="upgrade Onward", **where
        )
    return seen


def parse_header(raw: bytes, **where: Any) -> Header:
    """Read the first line (without newline). The version is looked at before the shape.

    Raises:
        FormatUnsupported: the format is newer than this program.
        Corrupt: it is no header of a session, or damaged.
    """
    header_document(raw, **where)
    if sealed(raw, b"") is None:
        raise Corrupt("the header does not have the hash that it ends in", line=1, offset=0, **where)
    try:
        return decode_header(raw)
    except msgspec.DecodeError as error:
        raise Corrupt(f"the header is not of its shape: {error}", line=1, offset=0, **where) from None


def first_seq_of(header: Header) -> int:
    """The seq of a session's first own line."""
    return 0 if header.parent is msgspec.UNSET else header.parent.seq + 1


def seq_of(raw: bytes) -> int | None:
    """The seq that a line says it has, None if it does not start with one."""
    if raw[:7] != _SEQ:
        return None
    number = raw[7:27].partition(b",")[0]
    return int(number) if number.isdigit() else None


def hash_of(raw: bytes) -> bytes:
    """The hash that a line ends in (16 bytes), as it stands there."""
    return raw[-18:-2]


def check(raw: bytes, previous: bytes, seq: int) -> str | None:
    """What is wrong with a line that should have this seq and follow a line of that hash; None if nothing."""
    if sealed(raw, previous) is None:
        if raw[-HASH_TAIL:-18] != _HASH or raw[-2:] != b'"}':
            return "the line does not end in a hash"
        return "the line does not follow from the line before it: its hash is wrong"
    if not raw.startswith(b'{"seq":%d,' % seq):
        found = seq_of(raw)
        return f"the line says seq {found}" if found is not None else "the line does not start with its seq"
    return None


def count_good(block: Sequence[bytes], previous: bytes, seq: int) -> tuple[int, bytes]:
    """How many lines from the start of `block` are good, and the hash of the last of those.

    Same rules as `check`, written out because a log of a million lines goes through it.
    """
    if not all(map(bytes.startswith, block, map(b'{"seq":%d,'.__mod__, range(seq, seq + len(block))))):
        wrong = next(i for i, raw in enumerate(block) if not raw.startswith(b'{"seq":%d,' % (seq + i)))
        block = block[:wrong]
    hash_, size, good = blake2b, -HASH_TAIL, 0
    for raw in block:
        digest = hash_(raw[:size], digest_size=8, key=previous).hexdigest().encode()
        if raw[size:] != b',"hash":"%b"}' % digest:
            break
        previous = digest
        good += 1
    return good, previous
