"""A session as one HTML file that people open: `data` gathers what it holds, `page` puts the file together."""

from __future__ import annotations

from onward.formats.html.page import to_html

__all__ = ["to_html"]
