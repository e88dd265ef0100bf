"""Images and files for providers: as bytes where somebody can fetch them, by URL, else as a line of text."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from onward.model.messages import Context, File, Image

Fetch = Callable[[str], bytes]
"""Gives a blob's bytes by its sha256 in hex."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Image types that both providers take."""


def placeholder(block: Image | File) -> str:
    """The text that stands for an image or a file that cannot be sent."""
    kind = "image" if isinstance(block, Image) else "file"
    facts = [
        block.name if isinstance(block, File) and isinstance(block.name, str) else None,
        block.media_type if isinstance(block.media_type, str) else None,
        f"{block.size} bytes" if isinstance(block.size, int) else None,
        f"sha256 {block.sha256}" if isinstance(block.sha256, str) else None,
        block.url if isinstance(block.url, str) and not block.url.startswith("data:") else None,
    ]
    about = ", ".join(fact for fact in facts if fact)
    return f"[{kind} not shown{': ' + about if about else ''}]"


def pointer(block: Context) -> str:
    """The text that stands for something that can be read again."""
    return f"[{block.uri}] {block.abstract}".strip()


def inline(block: Image | File, fetch: Fetch | None) -> tuple[str, str] | None:
    """The media type and the base64 text of a block's bytes; None where they cannot be had here."""
    if isinstance(block.url, str) and block.url.startswith("data:"):
        head, comma, payload = block.url[5:].partition(",")
        media_type, _, coding = head.partition(";")
        return (media_type, payload) if comma and media_type and coding == "base64" else None
    if fetch is None or not isinstance(block.sha256, str) or not isinstance(block.media_type, str):
        return None
    return block.media_type, b64encode(fetch(block.sha256)).decode("ascii")


def web_url(block: Image | File) -> str | None:
    """The block's URL if a provider can fetch it."""
    return block.url if isinstance(block.url, str) and block.url.startswith(("https://", "http://")) else None


def document(block: File, fetch: Fetch | None) -> str | None:
    """The text of a text file that can be fetched, else None."""
    fetchable = fetch is not None and isinstance(block.sha256, str) and isinstance(block.media_type, str)
    if not fetchable or not str(block.media_type).startswith("text/"):
        return None
    assert fetch is not None and isinstance(block.sha256, str)
    text = fetch(block.sha256).decode("utf-8", "replace")
    return text if text.strip() else None
