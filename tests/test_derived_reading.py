"""What tools that show a file say of it: Claude Code's, Pi's, the DeepSeek Harness's, and others' like them."""

from __future__ import annotations

from typing import Any

import pytest

from derived import seen

REMINDER = "\n\n<system-reminder>\nSomething to think of.\n</system-reminder>\n"


def kept(content: str, start: int, total: int, **more: Any) -> dict[str, Any]:
    file = {"filePath": "a", "content": content, "numLines": content.count("\n") + 1, "startLine": start}
    return {"meta": {"toolUseResult": {"type": "text", "file": {**file, "totalLines": total}, **more}}}


def claude(arguments: dict[str, Any], text: str, **fields: Any) -> list[str]:
    return seen("Read", {"file_path": "a", **arguments}, text, **fields)


@pytest.mark.parametrize(
    ("arguments", "text", "fields", "then"),
    [
        ({}, "     1→x\n     2→y\n     3→", {}, r"lines 1:'x\ny' end"),
        ({}, "     1\tx\n     2\ty", {}, r"lines 1:'x\ny' end"),
        ({}, "     1→x\n     2→" + REMINDER, {}, "lines 1:'x' end"),
        ({"offset": 7, "limit": 2}, "     7→x\n     8→y", {}, r"lines 7:'x\ny'"),
        ({"offset": 7, "limit": 3}, "     7→x\n     8→y" + REMINDER, {}, r"lines 7:'x\ny' end"),
        ({}, "    1→a\n    2→\t1→b\n    4→c", {}, r"lines 1:'a\n\t1→b'"),
        ({}, "     1→" + "x" * 2_000 + "... [truncated]\n     2→y", {}, f"lines 1:'{'x' * 2_000}\\ny'~0 end"),
        ({}, "\n".join(f"{n:6}→z" for n in range(1, 2_001)), {}, "lines 1:" + repr("\n".join(["z"] * 2_000))),
        ({}, "ignored", kept("x\ny\n", 1, 3), r"whole 'x\ny\n'"),
        ({}, "ignored", kept("x\ny", 1, 2), r"lines 1:'x\ny' end"),
        ({"offset": 3}, "ignored", kept("x\ny\n", 3, 5), r"lines 3:'x\ny' end"),
        ({"offset": 3, "limit": 2}, "ignored", kept("x\ny", 3, 9), r"lines 3:'x\ny'"),
        ({}, "ignored", kept("", 1, 1), "whole ''"),
        ({}, "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>", {}, "whole ''"),
        ({}, "<system-reminder>Warning: the file exists but is shorter than 9 lines</system-reminder>", {}, "?"),
        ({}, "File unchanged since last read. It is above.", {"meta": {"toolUseResult": {"type": "x"}}}, "?"),
        ({}, "x", {"meta": {"toolUseResult": {"type": "file_unchanged", "file": {"filePath": "a"}}}}, "?"),
        ({}, "", {"meta": {"toolUseResult": {"type": "image", "file": {"originalSize": 9}}}}, "?"),
        ({}, '<cell id="a">\n12\tx\n</cell id="a">', {}, "?"),
        ({}, "     1→" + "x" * 2_500, {}, f"lines 1:'{'x' * 2_500}' end"),
        ({}, "cells", {"meta": {"toolUseResult": {"type": "notebook", "file": {"cells": []}}}}, "?"),
        ({}, "PDF", {"meta": {"toolUseResult": {"type": "pdf", "file": {"base64": "", "originalSize": 4}}}}, "?"),
    ],
)
def test_a_reading_of_claude_code_covers_the_lines_that_it_shows(
    arguments: dict[str, Any], text: str, fields: dict[str, Any], then: str
) -> None:
    assert claude(arguments, text, **fields) == [f"looked file:a {then}"]


def test_an_image_is_known_by_its_bytes_only_where_it_came_as_large_as_it_was() -> None:
    block = {"type": "image", "media_type": "image/png", "sha256": "ab" * 32, "size": 9}
    for size, then in ((9, "whole ababab"), (10, "?")):
        meta = {"toolUseResult": {"type": "image", "file": {"originalSize": size}}}
        assert claude({}, "", content=[block], meta=meta) == [f"looked file:a {then}"]


@pytest.mark.parametrize(
    ("text", "fields", "seen_"),
    [
        ("<tool_use_error>File does not exist.</tool_use_error>", {}, ["looked file:a absent"]),
        ("ENOENT: no such file or directory, open 'a'", {}, ["looked file:a absent"]),
        ("File not found: a", {}, ["looked file:a absent"]),
        ('Error: cannot read "/w/a": not found', {"code": "FS_NOT_FOUND"}, ["looked file:a absent"]),
        ("a: there is no such file or directory.", {}, ["looked file:a absent"]),
        ("a: permission denied", {}, []),
        ("File content (30000 tokens) exceeds maximum allowed tokens (25000).", {}, []),
        ("The user doesn't want to proceed with this tool use.", {}, []),
        ("x" * 700 + " no such file or directory", {}, []),
    ],
)
def test_a_reading_that_failed_says_at_most_that_the_file_was_not_there(
    text: str, fields: dict[str, Any], seen_: list[str]
) -> None:
    assert claude({}, text, is_error=True, **fields) == seen_


@pytest.mark.parametrize(
    ("arguments", "text", "then"),
    [
        ({}, "x\ny\n", r"whole 'x\ny\n'"),
        ({}, "x\ny", r"whole 'x\ny'"),
        ({}, "\n", r"whole '\n'"),
        ({"offset": 3}, "x\ny\n", r"lines 3:'x\ny' end"),
        ({"offset": 3}, "x\n\n", r"lines 3:'x\n' end"),
        ({"limit": 2}, "x\ny\n\n... (5 more lines not shown. Use offset=3 to continue reading)", r"lines 1:'x\ny'"),
        (
            {"offset": 5, "limit": 1},
            "x\n\n... (1 more lines not shown. Use offset=6 to continue reading)",
            "lines 5:'x'",
        ),
        ({}, "x" * 2_000 + "\ny\n\n... (Some lines were truncated to 2000 characters for display)", "cut end"),
        ({"limit": 2}, "x\ny\n\n[5 more lines in file. Use offset=3 to continue.]", r"lines 1:'x\ny'"),
        ({}, "x\ny\n\n[Showing lines 1-2 of 900. Use offset=3 to continue.]", r"lines 1:'x\ny'"),
        ({}, "x\n\n\n[Showing lines 1-2 of 9 (50.0KB limit). Use offset=3 to continue.]", r"lines 1:'x\n'"),
        ({}, "[Line 1 is 60KB, exceeds 50.0KB limit. Use bash: sed -n '1p' a | head -c 51200]", "?"),
        ({"offset": "2", "limit": 1.0}, "x\n\n[5 more lines in file. Use offset=3 to continue.]", "lines 2:'x'"),
        # A file may end so itself.
        ({}, "x\n\n[5 more lines in file. Use offset=2 to continue.]", "whole"),
        ({"limit": 9}, "x\n\n[5 more lines in file. Use offset=7 to continue.]", "whole"),
        ({}, "Read image file [image/png]\n[Image omitted: could not be resized below the limit.]", "?"),
        ({}, "", "?"),
    ],
)
def test_a_reading_of_pi_covers_the_lines_that_it_shows(arguments: dict[str, Any], text: str, then: str) -> None:
    if then == "whole":
        then = f"whole {text!r}"
    if then == "cut end":
        then = f"lines 1:'{'x' * 2_000}\\ny'~0 end"
    assert seen("read", {"path": "a", **arguments}, text) == [f"looked file:a {then}"]


def dsh(lines: list[tuple[int, str]], total: int | None) -> dict[str, Any]:
    rows = [{"number": number, "text": text} for number, text in lines]
    return {"meta": {"dsh": {"turn": 1, "meta": {"path": "/w/a", "lines": rows, "totalLines": total}}}}


def wrapped(*rows: str) -> str:
    return "\n".join(["<path>/w/a</path>", "<type>file</type>", "<content>", *rows, "</content>"])


@pytest.mark.parametrize(
    ("text", "fields", "then"),
    [
        (wrapped("1: x", "2: y", "", "(End of file - total 2 lines)"), {}, r"lines 1:'x\ny' end"),
        (wrapped("1: x", "2: y", "", "(Showing lines 1-2 of 9. Use offset=3 to continue.)"), {}, r"lines 1:'x\ny'"),
        (wrapped("3: x", "", "(End of file - total 3 lines)"), {}, "lines 3:'x' end"),
        (wrapped("1: x", "2: ", "", "(End of file - total 2 lines)"), {}, "lines 1:'x' end"),
        (wrapped("1: </content>", "", "(End of file - total 1 lines)"), {}, "lines 1:'</content>' end"),
        (
            wrapped("1: " + "x" * 2_000 + "...", "", "(End of file - total 1 lines)"),
            {},
            f"lines 1:'{'x' * 2_000}'~0 end",
        ),
        (wrapped("", "(End of file - total 0 lines)"), {}, "whole ''"),
        ("ignored", dsh([(1, "x"), (2, "y")], 2), r"lines 1:'x\ny' end"),
        ("ignored", dsh([(4, "x"), (5, "y")], 9), r"lines 4:'x\ny'"),
        ("ignored", dsh([(4, "x"), (6, "y")], 9), "?"),
        ("ignored", dsh([], 0), "whole ''"),
        ("ignored", dsh([], None), "?"),
        (wrapped("binary"), {}, "?"),
    ],
)
def test_a_reading_of_the_deepseek_harness_covers_the_lines_that_it_shows(
    text: str, fields: dict[str, Any], then: str
) -> None:
    fields = fields or {"meta": {"dsh": {"turn": 1}}}
    assert seen("read", {"file_path": "a"}, text, **fields) == [f"looked file:a {then}"]


def test_a_reading_is_of_the_file_that_the_result_names() -> None:
    text = wrapped("1: x", "", "(End of file - total 1 lines)").replace("/w/a", "/w/sub/a")
    for fields in ({"meta": {"dsh": {}}}, {"meta": {"dsh": {"meta": {"path": "/w/sub/a"}}}}):
        assert seen("read", {"file_path": "a"}, text, **fields) == ["looked file:/w/sub/a lines 1:'x' end"]
    assert seen("read", {"path": "@src/a"}, "x\n") == [r"looked file:src/a whole 'x\n'"]


def test_a_reading_of_codex_covers_the_lines_that_it_shows() -> None:
    told = seen("read_file", {"file_path": "/w/a", "offset": 3, "limit": 2}, "L3: x\nL4: 5: y")
    assert told == [r"looked file:/w/a lines 3:'x\n5: y'"]


def test_a_view_of_a_text_editor_tool_covers_the_lines_that_it_shows() -> None:
    told = seen("str_replace_based_edit_tool", {"command": "view", "path": "a"}, "     1\tx\n     2\ty")
    assert told == [r"looked file:a lines 1:'x\ny' end"]
