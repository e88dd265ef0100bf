"""A model request of the past, rebuilt from its header and the nodes that it was made of. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import UNSET

from onward.context.projection import Carriers, Projection, project_surface
from onward.errors import Corrupt
from onward.model.data import RequestHeader
from onward.model.digests import SURFACE, spelled, surface_digest
from onward.model.event import Event, Header, given
from onward.model.messages import Message

COPIED = frozenset({"forked_from", "salvaged_from"})
"""What a header's lineage has where the lines of another session were copied, so that their hashes are others."""


@dataclass(frozen=True, slots=True)
class PastRequest:
    """A model request of the past.

    Attributes:
        event: its request/header.
        header: the header's data: model, settings, tools, budget, what was dropped, converter.
        projection: what the model was given.
        verified: the digest says that these are the messages; None where it cannot be told: a foreign header, a digest
            by a recipe that this program does not know, a session whose lines were copied from another.
    """

    event: Event
    header: RequestHeader
    projection: Projection
    verified: Literal[True] | None

    @property
    def messages(self) -> list[Message]:
        """The neutral messages, in order."""
        return self.projection.messages


def past_request(event: Event, shown: Sequence[Event], carriers: Carriers, session: Header) -> PastRequest:
    """Rebuild a request.

    Args:
        event: its request/header.
        shown: the nodes on the surface at the header's leaf, in order, blobs fetched.
        carriers: gives all nodes of the path that carry a surface.
        session: the header of the session.

    Raises:
        Corrupt: the nodes are not those that the request was made of, by its digest.
    """
    header = msgspec.convert(event.data, RequestHeader)
    dropped = given(header.dropped) or []
    verified: Literal[True] | None = None
    if header.digest is not UNSET and header.digest.startswith(f"{SURFACE}:"):
        if header.digest == spelled(surface_digest((node.hash for node in shown), dropped)):
            verified = True
        elif not COPIED & set(given(session.lineage) or ()):
            raise Corrupt("this request was made of other nodes than are there now", session=session.id, seq=event.seq)
    return PastRequest(event, header, project_surface(shown, carriers, dropped=dropped), verified)
