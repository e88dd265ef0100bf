"""Files that were renamed and edited: they are missing, and a note says where they perhaps are, if that can be said."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from onward.evidence import renamed
from onward.evidence.checking import check
from onward.evidence.making import of_bytes, of_lines
from onward.evidence.observation import Fingerprint, Observation, Subject
from onward.evidence.scope import Scope
from onward.evidence.status import Report

LINES = [f"    step_{number}(value, {number})" for number in range(40)]
EDITED = [*LINES[:10], "changed()", "changed_again()", *LINES[13:28], "one more", *LINES[31:]]
WHOLE = of_bytes("\n".join(LINES).encode())
PART = of_lines(LINES[:20], first=5)
PERHAPS = "src/a.py is perhaps now at src/b.py (34 of 40 lines are there)"


def text(lines: list[str]) -> str:
    return "\n".join(["# another head", *lines, ""])


class Case(NamedTuple):
    """What is in a checkout now in which `src/a.py` was seen, and what is said of it."""

    name: str
    files: dict[str, str]
    note: str | None
    then: Fingerprint = WHOLE
    earlier: tuple[str, ...] = ()


CASES = (
    Case("renamed and edited", {"src/b.py": text(EDITED)}, PERHAPS),
    Case("indented since", {"src/b.py": text(["  " + line for line in EDITED])}, PERHAPS),
    Case("beside one that is somewhat like it", {"src/b.py": text(EDITED), "src/c.py": text(LINES[:10])}, PERHAPS),
    Case(
        "a part of it was seen",
        {"b.py": text(LINES)},
        PERHAPS.replace("src/b", "b").replace("34 of 40", "20 of 20"),
        PART,
    ),
    Case("two are like it", {"src/b.py": text(EDITED), "src/c.py": text(LINES[:25])}, None),
    Case("it was there before", {"src/b.py": text(EDITED)}, None, earlier=("src/b.py",)),
    Case("half of it is there", {"src/b.py": text(LINES[:20])}, None),
    Case("its lines are there, none next to another", {"src/b.py": text(LINES[::2] + LINES[1::2])}, None),
    Case("of another kind", {"src/b.txt": text(EDITED)}, None),
    Case("hardly anything of it was seen", {"src/b.py": text(LINES)}, None, of_lines(LINES[:5], first=1)),
)


def look(root: Path, case: Case) -> Report:
    for path, content in case.files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(content)
    before = [Observation(1, Subject("file", path), "looked", "read", of_bytes(b"x\n")) for path in case.earlier]
    seen = Observation(2, Subject("file", "src/a.py"), "looked", "read", case.then)
    return check([*before, seen], Scope(str(root), str(root), str(root)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_of_a_file_that_was_renamed_and_edited_it_is_said_where_it_perhaps_is(case: Case, tmp_path: Path) -> None:
    report = look(tmp_path, case)
    assert report.findings[-1].status == "missing"
    assert report.notes == (() if case.note is None else (case.note,))


def test_of_several_looks_at_a_file_the_one_that_knows_most_says_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text(text(EDITED))
    parts = (of_lines(LINES[:9], 1), of_bytes("\n".join(LINES).encode()), of_lines(LINES[28:], 29))
    seen = [Observation(at, Subject("file", "a.py"), "looked", "read", then) for at, then in enumerate(parts)]
    with_all = "a.py is perhaps now at b.py (34 of 40 lines are there)"
    assert check(seen, Scope(*[str(tmp_path)] * 3)).notes == (with_all,)


@pytest.mark.parametrize(("bound", "most"), [("BYTES", 100), ("SECONDS", -1.0)])
def test_where_not_all_was_compared_nothing_is_guessed(
    bound: str, most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renamed, bound, most)
    assert look(tmp_path, CASES[0]).notes == (renamed.CUT,)
