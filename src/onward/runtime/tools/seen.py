"""`Seen`: which contents of which files a session's tools have shown to the model.

Rebuilt from the log, so that an edit after a resumption still notices what changed meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from onward.model.event import Event
from onward.model.tree import NONE

if TYPE_CHECKING:
    from onward.session import Session


class Seen:
    """Path (as tools report it) -> sha256 of the content that the model saw or wrote last. Thread-safe."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._known: dict[str, str] = dict(known or {})
        self._guard = threading.Lock()

    @classmethod
    def of(cls, nodes: Iterable[Event]) -> Seen:
        """From a path's nodes: what the `meta` of their tool/results says was looked at and changed."""
        seen = cls()
        seen.read(nodes)
        return seen

    def copy(self) -> Seen:
        """Another one that knows the same."""
        with self._guard:
            return Seen(self._known)

    def read(self, nodes: Iterable[Event]) -> None:
        """Take in what the tool/results among the next nodes of the path say."""
        for event in nodes:
            if event.type == "tool/result" and isinstance(event.data, dict):
                meta = event.data.get("meta")
                if isinstance(meta, dict):
                    self.take(meta)

    def take(self, data: Mapping[str, Any]) -> None:
        """Take in what a result's data says."""
        for item in _items(data, "looked"):
            if "lines" in item:  # a file's text was shown; a listing or a search shows no file
                self.note(item["path"], item.get("sha256"))
        for item in _items(data, "changed"):
            self.note(item["path"], item.get("after"))

    def note(self, path: str, sha256: Any) -> None:
        """A file was shown or written with this content; None = nothing is known of it any more."""
        with self._guard:
            if isinstance(sha256, str):
                self._known[path] = sha256
            else:
                self._known.pop(path, None)

    def get(self, path: str) -> str | None:
        """The sha256 of what was last seen of a file; None = it was not seen."""
        with self._guard:
            return self._known.get(path)


def _items(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    items = data.get(name)
    if not isinstance(items, list):
        return []
    return [item for item in items if isinstance(item, Mapping) and isinstance(item.get("path"), str)]


_folded: WeakKeyDictionary[Session, tuple[int, Seen]] = WeakKeyDictionary()
"""Session handle -> a leaf, and what the path to it has shown: a run reads what came after the run before it."""


def seen_in(session: Session) -> Seen:
    """What the tools of a session's active path have shown, for a run that begins."""
    with session.log.still():
        path = session.path
        leaf, before = _folded.get(session, (NONE, Seen()))
        if leaf not in path:
            leaf, before = NONE, Seen()
        nodes = list(path.marked(session.state.tree.is_node, leaf + 1))
    folded = before.copy()
    folded.read(session.read(nodes))
    _folded[session] = (path.leaf, folded)
    return folded.copy()
