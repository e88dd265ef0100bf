"""Pictures without what is written into them beside the picture: texts, places, names of cameras and programs.

Formats: PNG (W3C PNG 3rd edition, chunks), JPEG (ITU T.81 annex B, markers), GIF89a (extensions), WebP (RIFF chunks).
"""

from __future__ import annotations

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT = frozenset(
    (
        b"IHDR",
        b"PLTE",
        b"IDAT",
        b"IEND",
        b"tRNS",
        b"gAMA",
        b"cHRM",
        b"sRGB",
        b"sBIT",
        b"bKGD",
        b"pHYs",
        b"acTL",
        b"fcTL",
        b"fdAT",
    )
)
_WEBP_KEPT = frozenset((b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF"))


def bare(data: bytes) -> bytes | None:
    """The picture alone; None where the bytes are none of the known kinds or do not hold together."""
    if data.startswith(_PNG):
        return _png(data)
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg(data)
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _gif(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data)
    return None


def _png(data: bytes) -> bytes | None:
    out, at = [_PNG], len(_PNG)
    while at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            return None
        kind = data[at + 4 : at + 8]
        if kind in _PNG_KEPT:
            out.append(data[at:end])
        at = end
        if kind == b"IEND":
            return b"".join(out)
    return None


def _jpeg(data: bytes) -> bytes | None:
    out, at = [data[:2]], 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if end > len(data):
            return None
        # APP0 (JFIF) and APP14 (Adobe's colours) say how to show it; the other APPn and comments are metadata.
        if not (0xE1 <= marker <= 0xED or marker in (0xEF, 0xFE)):
            out.append(data[at:end])
        at = end
        if marker == 0xDA:
            stop = data.rfind(b"\xff\xd9")
            return b"".join([*out, data[at : stop + 2]]) if stop >= at else None
    return None


def _gif(data: bytes) -> bytes | None:
    if len(data) < 13:
        return None
    at = 13 + (3 << ((data[10] & 7) + 1) if data[10] & 0x80 else 0)
    out = [data[:at]]
    while at < len(data):
        start, kind = at, data[at]
        if kind == 0x3B:
            return b"".join([*out, b"\x3b"])
        if kind == 0x21:
            label = data[at + 1] if at + 1 < len(data) else 0
            end = _blocks(data, at + 2)
            keep = label == 0xF9 or (label == 0xFF and data[at + 3 : at + 14] == b"NETSCAPE2.0")
        elif kind == 0x2C and at + 10 < len(data):
            flags = data[at + 9]
            end = _blocks(data, at + 11 + (3 << ((flags & 7) + 1) if flags & 0x80 else 0))
            keep = True
        else:
            return None
        if end is None:
            return None
        at = end
        if keep:
            out.append(data[start:at])
    return None


def _blocks(data: bytes, at: int) -> int | None:
    """The place behind a chain of sub-blocks."""
    while at < len(data):
        size = data[at]
        at += 1 + size
        if not size:
            return at
    return None


def _webp(data: bytes) -> bytes | None:
    out, at = [], 12
    while at + 8 <= len(data):
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        end = at + 8 + size + size % 2
        if at + 8 + size > len(data):
            return None
        chunk = data[at:end].ljust(8 + size + size % 2, b"\0")
        if kind == b"VP8X":
            chunk = chunk[:8] + bytes([chunk[8] & ~0x2C]) + chunk[9:]  # no ICC profile, EXIF or XMP follows any more
        if kind in _WEBP_KEPT:
            out.append(chunk)
        at = end
    body = b"WEBP" + b"".join(out)
    return b"RIFF" + len(body).to_bytes(4, "little") + body if out else None
