"""What a store goes by where nothing is said: the place, the time, the person."""

from __future__ import annotations

import getpass
import os
import time
from pathlib import Path

from onward.errors import Usage


def default_home() -> Path:
    """`$ONWARD_HOME`, else the platform's data directory. Raises Usage where there is none."""
    home = os.environ.get("ONWARD_HOME")
    try:
        if home:
            return Path(home).expanduser()
        from platformdirs import user_data_path

        return user_data_path("onward", appauthor=False)
    except RuntimeError as error:  # neither $HOME nor the user database knows a home directory
        raise Usage(f"there is no place for sessions: {error}", hint="set ONWARD_HOME to an absolute path") from None


def now_ms() -> int:
    """The time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def user_name() -> str:
    """The name of the person who runs this, or `unknown`."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
