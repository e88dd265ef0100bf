"""The page: one file with its style, its script and its data in it, that fetches nothing and runs nothing else.

What a session says is in the page as JSON only, in which no character can end the script element that holds it; the
script makes text nodes of it. The content security policy names the hashes of the one style and the one script.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from string import Template

import msgspec

from onward.formats.exporting import Exported
from onward.formats.html.data import Gathering
from onward.formats.protocol import Loss
from onward.model.text import escaped_json
from onward.reading import View

SCRIPTS = ("tree.js", "text.js", "markdown.js", "tools.js", "items.js", "entries.js", "search.js", "page.js")
"""The parts of the script, in the order in which they need each other."""

_ESCAPED = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&"})


def to_html(view: View, held: Mapping[int, str] | None = None) -> Exported:
    """A session as one self-contained page, which opens at the view's path.

    Args:
        view: the path to open at; the page has every branch that the log has at the view's point.
        held: node -> whether what was looked at or concluded there still holds, as of now; None = nobody has looked.
    """
    gathering = Gathering(view, held)
    data = gathering.data()
    loss = [Loss(None, "a page for people cannot be imported again"), *gathering.loss]
    facts = sum(len(seqs) for type_, seqs in view.state.facts.items() if type_ not in ("label", "note", "title"))
    if facts:
        loss.append(Loss(None, f"{facts} facts other than titles, labels, notes and the sums of usage"))
    page = page_of(msgspec.json.encode(data).decode()).encode()
    return Exported("html", page, page.count(b"\n"), loss)


def page_of(data: str) -> str:
    """The page around a JSON document."""
    style = _part("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(map(_part, SCRIPTS)) + "\n})();\n"
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return Template(_part("page.html")).substitute(
        policy=policy, style=style, script=script, data=escaped_json(data).translate(_ESCAPED)
    )


def _part(name: str) -> str:
    return files("onward.formats.html").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
