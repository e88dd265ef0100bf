"""One measurement in a process of its own: `child.py module:function PARAMS FOLDER ANSWER`.

The answer is a file, so that what a library prints does not get in the way. Peak memory is added to the numbers.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
from pathlib import Path

from sample import Skip


def peak_rss_mb() -> float:
    """The largest resident size of this process so far, in MB (10**6 bytes).

    Linux's `ru_maxrss` keeps the parent's peak across exec; `VmHWM` is this program's alone.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def main() -> None:
    name, params, folder, answer = sys.argv[1:]
    module, function = name.split(":")
    # Not the answer's folder itself: a measurement may count what lies in its folder.
    work = Path(folder) / "work"
    work.mkdir()
    try:
        numbers = getattr(importlib.import_module(module), function)(work, **json.loads(params))
    except Skip as reason:
        Path(answer).write_text(json.dumps({"skipped": str(reason)}))
        return
    numbers.setdefault("rss_mb", peak_rss_mb())
    Path(answer).write_text(json.dumps({"numbers": numbers}))


if __name__ == "__main__":
    main()
