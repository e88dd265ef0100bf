"""Pi's session files, versions 1 to 3: reading, writing, and Pi's own migration of old ones."""

from __future__ import annotations

from onward.formats.pi.format import PI

__all__ = ["PI"]
