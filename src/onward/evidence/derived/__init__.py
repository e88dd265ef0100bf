"""Observations read out of recorded tool results: a reader a family of tools, and the fold over a path. Pure."""
