"""Onward: carry an agent's task on. Sessions that survive, and the context that a model sees."""

__version__ = "0.1.0"
