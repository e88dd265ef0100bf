"""The options that a run of `onward run` was begun with, kept in its log, so that it goes on with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from onward.reading import View

COMMAND: Literal["onward run"] = "onward run"
"""What tells these options from another program's."""


class RunOptions(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Options of `onward run`; None = it was not given, or is not to be kept.

    Attributes:
        command: whose options they are.
    """

    command: Literal["onward run"] = COMMAND
    model: str | None = None
    tools: str | None = None
    approve: Literal["ask", "never", "all"] | None = None
    max_loops: int | None = None
    plan: bool | None = None
    window: int | None = None

    def over(self, others: RunOptions) -> RunOptions:
        """These, and those of `others` where these have none."""
        theirs = {name: getattr(others, name) for name in NAMES}
        return RunOptions(**{name: theirs[name] if (own := getattr(self, name)) is None else own for name in NAMES})

    def kept(self) -> dict[str, Any]:
        """As the log keeps them: no secret that an address may hold, and a script by its whole path."""
        model = None if self.model is None else _kept(self.model)
        return {"command": COMMAND, **msgspec.to_builtins(msgspec.structs.replace(self, model=model))}

    def words(self) -> str:
        """As they would be typed."""
        said = [f"--{name.replace('_', '-')} {value}" for name, value in self._given() if not isinstance(value, bool)]
        return " ".join([*said, *(["--plan"] if self.plan else [])])

    def _given(self) -> list[tuple[str, Any]]:
        return [(name, value) for name in NAMES if (value := getattr(self, name)) is not None]


NAMES = tuple(name for name in RunOptions.__struct_fields__ if name != "command")

DEFAULTS = RunOptions(tools="all", approve="ask", max_loops=50, plan=False)
"""What goes for what nobody said."""


def of_last_run(view: View) -> RunOptions:
    """Those of the last run of a path; none where `onward run` did not begin it."""
    from onward.runtime.position import run_options

    kept = run_options(view)
    try:
        return msgspec.convert(kept, RunOptions) if kept and kept.get("command") == COMMAND else RunOptions()
    except msgspec.ValidationError:
        return RunOptions()  # another version's


def _kept(model: str) -> str | None:
    if model.startswith("scripted:"):
        return f"scripted:{Path(model.removeprefix('scripted:')).absolute()}"
    if model.startswith(("http://", "https://")):
        parts = urlsplit(model)
        return None if "@" in parts.netloc or parts.query else model
    return model
