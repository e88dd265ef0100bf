"""Codex's rollout files, of both generations: reading and writing."""

from __future__ import annotations

from onward.formats.codex.format import CODEX

__all__ = ["CODEX"]
