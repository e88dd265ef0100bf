"""Write the pages that follow from the code; with --check, only say whether they are up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from onward.model.vocabulary import TABLE, Kind

HERE = Path(__file__).parent
KINDS = {Kind.NODE: "Nodes", Kind.NODE_FACT: "Facts of a node", Kind.SESSION_FACT: "Facts of the session"}


def vocabulary() -> str:
    lines = [
        "# Vocabulary",
        "",
        "Generated from `onward.model.vocabulary` by `make docs`. S = may be on the surface.",
        "",
    ]
    for kind, title in KINDS.items():
        lines += [f"## {title}", "", "| type | S | data | meaning |", "|---|---|---|---|"]
        for row in TABLE:
            if row.kind is kind:
                fields = ", ".join(f"`{f}`" for f in row.data.__struct_fields__ if f != "meta") or "—"
                lines.append(f"| `{row.name}` | {'S' if row.surface else ''} | {fields} | {row.summary} |")
        lines.append("")
    return "\n".join(lines)


PAGES = {"vocabulary.md": vocabulary}


def main() -> int:
    stale = []
    for name, make in PAGES.items():
        path, text = HERE / name, make()
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, "utf-8")
    if stale and "--check" in sys.argv:
        print(f"out of date: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
