"""What a page holds of a session: every node of the log with its place in the tree and on the surface, as JSON.

The page folds paths and surfaces itself, by the rules that `model.surface` follows, so nothing is stored twice.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, to_builtins
from msgspec.structs import asdict

from onward.errors import BlobMissing
from onward.formats.protocol import Loss
from onward.model.event import Event, SurfaceOp
from onward.model.transcript import role_of
from onward.model.tree import NONE
from onward.model.usage import Totals
from onward.reading import View

VERSION = 1
"""The version of the data that `page.js` reads."""

LONG = 256
"""Characters from which on a text is kept once, however often it occurs (compactions repeat whole histories)."""

_PICTURES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
_BY_THEIR_OWN = ("user/message", "system/message", "assistant/message", "custom/message", "context/edit")
_KEPT = ("source", "stop", "kind", "call_id", "name", "how", "is_error", "interrupted", "target", "reason", "left")


class Gathering:
    """The data of one page.

    Attributes:
        loss: what could not be brought in.
    """

    def __init__(self, view: View, held: Mapping[int, str] | None = None) -> None:
        """Args: view: see `to_html`. held: what of its path still holds; None = nobody has looked."""
        self.loss: list[Loss] = []
        self._held = held
        self._view = view
        self._texts: dict[str, int] = {}
        self._images: dict[str, tuple[str, str]] = {}
        self._summaries: set[int] = set()

    def data(self) -> dict[str, Any]:
        """Everything that the page shows, as JSON."""
        view = self._view
        header, state = view.header, view.state
        nodes = self._nodes()
        return {
            "version": VERSION,
            "session": {
                "id": view.id,
                "title": view.title,
                "created": header.created,
                "cwd": header.cwd if isinstance(header.cwd, str) else None,
                "project": header.project.name,
                "origin": None if header.origin is UNSET else header.origin.format,
                "branch": view.branch,
                "leaf": view.leaf,
            },
            "branches": [
                {"name": name, "leaf": None if leaf == NONE else leaf} for name, leaf in view.branches().items()
            ],
            "labels": [[seq, label] for seq, label in view.labels().items()],
            "notes": [
                [event.about, event.data.get("text", "")]
                for event in view.read(list(state.facts.get("note", ())))
                if isinstance(event.about, int)
            ],
            **({} if self._held is None else {"holds": [[seq, standing] for seq, standing in self._held.items()]}),
            **self._usage(),
            "nodes": nodes,
            "texts": list(self._texts),
            "images": {name: list(image) for name, image in self._images.items()},
        }

    def _usage(self) -> dict[str, Any]:
        ledger = self._view.usage()
        return {
            "totals": _totals(ledger.totals),
            "models": [
                {"provider": provider, "name": name, **_totals(totals)}
                for (provider, name), totals in ledger.by("model").items()
            ],
        }

    def _nodes(self) -> list[dict[str, Any]]:
        tree = self._view.state.tree
        before = NONE
        nodes = []
        for event in self._view.events():
            if not tree.has_node(event.seq):
                continue
            node = self._node(event)
            parent = tree.parent(event.seq)
            if parent != before:
                node["parent"] = None if parent == NONE else parent
            before = event.seq
            nodes.append(node)
        return nodes

    def _node(self, event: Event) -> dict[str, Any]:
        node: dict[str, Any] = {"seq": event.seq, "time": event.time, "type": event.type}
        if event.surface is not UNSET:
            node["surface"] = to_builtins(event.surface) if isinstance(event.surface, SurfaceOp) else 1
        data = event.data if isinstance(event.data, dict) else {}
        role = role_of(event)
        if role is not None:
            node["role"] = role
        for name in _KEPT:
            if name in data and data[name] is not None and data[name] is not False:
                node[name] = data[name]
        if isinstance(data.get("model"), dict) and data["model"].get("name"):
            node["model"] = data["model"]["name"]
        if event.type == "compaction/summary":
            self._summaries.add(event.seq)
        elif event.type == "user/message":
            # The Harness keeps its summary apart from the message that the model then sees, which cites it.
            for source in event.sources:
                if isinstance(source, int) and source in self._summaries:
                    node["compaction"] = source
        if isinstance(data.get("usage"), dict):
            node["usage"] = {name: value for name, value in data["usage"].items() if name != "meta" and value}
        if isinstance(data.get("error"), dict):
            node["error"] = str(data["error"].get("message", ""))
        self._content(node, event, data)
        return node

    def _content(self, node: dict[str, Any], event: Event, data: dict[str, Any]) -> None:
        message = data.get("message")
        if event.type in _BY_THEIR_OWN:
            if isinstance(message, dict):
                node["blocks"] = self._blocks(message.get("blocks") or (), event.seq)
        elif event.type == "tool/result":
            node["blocks"] = self._blocks(data.get("content") or (), event.seq)
        elif isinstance(data.get("messages"), list) and event.type == "compaction/summary":
            node["messages"] = [
                {"role": one.get("role"), "blocks": self._blocks(one.get("blocks") or (), event.seq)}
                for one in data["messages"]
            ]
        elif event.type in ("compaction/summary", "branch/summary"):
            text = data.get("summary") or ""
            node["blocks"] = [{"type": "text", "text": self._text(text)}] if text else []
        else:
            node["data"] = event.data

    def _blocks(self, blocks: Sequence[Any], seq: int) -> list[dict[str, Any]]:
        return [self._block(block, seq) for block in blocks]

    def _block(self, block: dict[str, Any], seq: int) -> dict[str, Any]:
        out = {name: value for name, value in block.items() if name != "meta"}
        kind = block.get("type")
        if isinstance(out.get("text"), str):
            out["text"] = self._text(out["text"])
        if kind == "tool_result":
            out["content"] = self._blocks(block.get("content") or (), seq)
        if kind == "image" and isinstance(block.get("sha256"), str):
            self._image(block["sha256"], seq)
        return out

    def _text(self, text: str) -> str | int:
        """A text, or its place in `texts`."""
        return text if len(text) < LONG else self._texts.setdefault(text, len(self._texts))

    def _image(self, name: str, seq: int) -> None:
        """Bring an image in, if its bytes are of one of the kinds that a browser shows and that can run nothing."""
        if name in self._images:
            return
        try:
            data = self._view.blob(name)
        except BlobMissing:
            self.loss.append(Loss(seq, "the bytes of an image are gone"))
            return
        for media_type, start in _PICTURES.items():
            if data.startswith(start) and (media_type != "image/webp" or data[8:12] == b"WEBP"):
                self._images[name] = (media_type, b64encode(data).decode())
                return
        self.loss.append(Loss(seq, "an image that is no PNG, JPEG, GIF or WebP is not in the page"))


def _totals(totals: Totals) -> dict[str, Any]:
    return asdict(totals)
