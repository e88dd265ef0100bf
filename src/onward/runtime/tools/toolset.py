"""`Toolset`: the tools of a run, by name, with a digest that tells whether they are still the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from onward.errors import Usage
from onward.model.data import Digest
from onward.runtime.tools.tool import Tool, digest_of


class Toolset:
    """Tools with unique names, in the order in which a model is told of them.

    Raises:
        Usage: two tools have one name.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise Usage(f"two tools are called {tool.name}", hint="give one of them another name")
            self._tools[tool.name] = tool

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __add__(self, others: Iterable[Tool]) -> Toolset:
        return Toolset([*self, *others])

    def get(self, name: str) -> Tool | None:
        """The tool of a name, or None."""
        return self._tools.get(name)

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return list(self._tools)

    def only(self, names: Iterable[str]) -> Toolset:
        """The tools of these names, in this set's order.

        Raises:
            Usage: there is no tool of a name.
        """
        wanted = set(names)
        unknown = sorted(wanted - self._tools.keys())
        if unknown:
            raise Usage(f"there is no tool {unknown[0]!r}", hint=f"there are {', '.join(self._tools) or 'none'}")
        return Toolset(tool for tool in self if tool.name in wanted)

    def specs(self) -> list[dict[str, Any]]:
        """What a model is told: `{name, description, parameters}` of each tool."""
        return [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in self]

    def digest(self) -> Digest:
        """Of all the tools, in whatever order: see `digest_of`."""
        return digest_of(self)
