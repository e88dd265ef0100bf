"""Claude Code's session files, 1.0 to 2.1: reading them with their sub-agents' files, and writing them."""

from __future__ import annotations

from onward.formats.claude_code.format import CLAUDE_CODE

__all__ = ["CLAUDE_CODE"]
