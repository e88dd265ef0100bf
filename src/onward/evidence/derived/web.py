"""Tools that fetch from the network."""

from __future__ import annotations

import re

from onward.evidence.derived.done import Done
from onward.evidence.observation import Observation, Unverifiable

_VALID = re.compile(r"https?://\S+\Z")

RENDERED = Unverifiable("the page was shown in another form, and nothing of its headers was recorded")
RESULTS = Unverifiable("what a search engine finds changes from one moment to the next")


def fetch(done: Done) -> list[Observation]:
    """A page."""
    url = done.said("url", "uri")
    if done.failed or url is None or not _VALID.match(url):
        return []
    return [done.of("url", url, RENDERED)]


def search(done: Done) -> list[Observation]:
    """A search in the web."""
    query = done.said("query", "q")
    if done.failed or query is None:
        return []
    return [done.of("query", query, RESULTS, action="searched")]
