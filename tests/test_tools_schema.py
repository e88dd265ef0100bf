"""A function's annotations become a schema, and what a model gives is checked before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.errors import BadArguments, Usage
from onward.model.data import Digest
from onward.runtime.tools.calling import BAD_ARGUMENTS, UNKNOWN_TOOL, Outcome, check
from onward.runtime.tools.schema import check_shape
from onward.runtime.tools.tool import Tool, ToolContext, tool
from onward.runtime.tools.toolset import Toolset
from tools import at, call, ready


class Point(msgspec.Struct):
    x: int
    y: int = 0


@tool(effect="read")
def find(
    words: list[str],
    context: ToolContext,
    kind: Literal["file", "folder"] = "file",
    limit: Annotated[int, msgspec.Meta(ge=1, description="at most so many")] = 10,
    near: Point | None = None,
) -> str:
    """Find things.

    By their words.

    Args:
        words: what to look for,
            all of them.
        limit: not this one: the annotation says it.
    """
    return f"{words} {kind} {limit} {near} in {context.cwd.name}"


def test_a_schema_follows_from_the_annotations_and_the_docstring():
    assert find.name == "find"
    assert find.description == "Find things.\n\nBy their words."
    properties = find.parameters["properties"]
    assert list(properties) == ["words", "kind", "limit", "near"]
    assert properties["words"] == {
        "type": "array",
        "items": {"type": "string"},
        "description": "what to look for, all of them.",
    }
    assert properties["kind"] == {"enum": ["file", "folder"], "default": "file"}
    assert properties["limit"]["description"] == "at most so many"
    assert find.parameters["required"] == ["words"]
    assert find.parameters["additionalProperties"] is False
    assert find.parameters["$defs"]["Point"]["required"] == ["x"]


def test_a_body_gets_its_arguments_in_the_types_of_the_annotations(tmp_path: Path):
    assert (
        call(find, at(tmp_path), words=["a"], near={"x": 3}).text == f"['a'] file 10 Point(x=3, y=0) in {tmp_path.name}"
    )


def test_null_for_a_parameter_that_need_not_be_given_counts_as_not_given(tmp_path: Path):
    assert " file 10 " in call(find, at(tmp_path), words=[], limit=None, kind=None).text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, ["`words` is missing"]),
        ({"words": ["a"], "wrods": 1}, ["`wrods` is not a parameter"]),
        ({"words": "a"}, ["`words`: expected `array`, got `str`"]),
        ({"words": ["a", 2]}, ["`words[1]`: expected `str`, got `int`"]),
        ({"words": [], "limit": "5"}, ["`limit`: expected `int`, got `str`"]),
        ({"words": [], "limit": 0}, ["`limit`: expected `int` >= 1"]),
        ({"words": [], "kind": "both"}, ["`kind`: invalid enum value 'both'"]),
        ({"words": [], "near": {"x": True}}, ["`near.x`: expected `int`, got `bool`"]),
        (
            {"limit": 1.5, "x": 1},
            ["`words` is missing", "`x` is not a parameter", "`limit`: expected `int`, got `float`"],
        ),
        ('{"words": [', ["not valid JSON", "truncated"]),
        ("[1]", ["one JSON object, not array"]),
        (None, ["one JSON object, not null"]),
        ("", ["`words` is missing"]),
    ],
)
def test_arguments_that_do_not_fit_are_told_all_at_once_and_nothing_runs(given: Any, says: list[str], tmp_path: Path):
    outcome = ready(find, at(tmp_path), given)
    assert isinstance(outcome, Outcome)
    assert (outcome.is_error, outcome.code, outcome.started) == (True, BAD_ARGUMENTS, False)
    assert "Nothing was run" in outcome.text
    for words in says:
        assert words in outcome.text


def test_arguments_that_are_text_are_taken_when_they_parse_after_all(tmp_path: Path):
    checked = check(Toolset([find]), "find", '{"words": ["a"]}')
    assert not isinstance(checked, Outcome)
    assert checked[1] == {"words": ["a"]}


def test_a_tool_that_is_not_there_is_an_error_that_names_those_that_are():
    outcome = check(Toolset([find]), "fnid", {})
    assert isinstance(outcome, Outcome)
    assert outcome.code == UNKNOWN_TOOL
    assert "find" in outcome.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_whatever_a_model_gives_is_either_taken_or_refused_with_a_sentence(given_: Any):
    for made in (find, RAW):
        try:
            assert isinstance(made.arguments(given_), dict)
        except BadArguments as error:
            assert "Nothing was run" in error.message


RAW = Tool(
    name="raw",
    description="of a schema that somebody else wrote",
    parameters={
        "type": "object",
        "properties": {"n": {"type": "integer"}, "s": {"type": ["string", "null"]}, "e": {"enum": [1, "x"]}, "any": {}},
        "required": ["n"],
        "additionalProperties": False,
    },
    body=lambda arguments, context: str(arguments),
)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"n": 1, "s": None, "e": "x", "any": [1]}, None),
        ({"n": 2.0}, None),
        ({"n": True}, "`n` must be integer, not boolean"),
        ({"n": 1, "s": 3}, "`s` must be string or null, not integer"),
        ({"n": 1, "e": 2}, '`e` must be one of 1, "x"'),
        ({"n": 1, "z": 2}, "`z` is not a parameter"),
        ({"s": "x"}, "`n` is missing"),
    ],
)
def test_a_schema_that_somebody_else_wrote_is_checked_at_its_top(given: dict[str, Any], says: str | None):
    if says is None:
        assert RAW.arguments(given) == given
    else:
        with pytest.raises(BadArguments) as error:
            RAW.arguments(given)
        assert says in error.value.message


def test_a_schema_that_is_open_takes_other_names():
    assert check_shape({"type": "object", "properties": {}}, {"other": 1}) == {"other": 1}


def test_a_parameter_without_an_annotation_or_name_is_refused_when_the_tool_is_made():
    def bare(x):
        return x

    def many(*xs: int) -> None: ...

    with pytest.raises(TypeError, match="x has no annotation"):
        tool(bare)
    with pytest.raises(TypeError, match="cannot be given by name"):
        tool(many)


@pytest.mark.parametrize("name", ["", "two words", "a" * 65, "ünïcode", "a.b"])
def test_a_name_that_providers_refuse_is_refused(name: str):
    with pytest.raises(Usage, match="no name for a tool"):
        Tool(name=name, description="", parameters={"type": "object"}, body=lambda arguments, context: "")


def test_a_verifiable_tool_needs_a_probe():
    with pytest.raises(Usage, match="probe"):
        tool(name="t", effect="verifiable")(lambda: "x")


# --- digests ----------------------------------------------------------------------------------------------------


def simple(**fields: Any) -> Tool:
    properties = {"a": {"type": "string"}, "b": {"type": "integer"}}
    base: dict[str, Any] = {
        "name": "t",
        "description": "é",
        "parameters": {"type": "object", "properties": properties},
        "body": lambda arguments, context: "",
    }
    return Tool(**{**base, **fields})


def test_a_digest_names_its_recipe_and_does_not_depend_on_order_or_on_how_a_letter_is_written():
    other = {"properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "type": "object"}
    one, two = find, simple()
    assert Toolset([one, two]).digest() == Toolset([simple(description="e\u0301", parameters=other), one]).digest()
    assert Toolset([one]).digest().algorithm == "tools-1"
    # Pinned: a checkpoint of an earlier release must not be taken for one of other tools.
    assert simple().digest() == Digest("tools-1", "b35b79cdd7c64f44df600c6693b7c617")


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "u"},
        {"description": "e"},
        {"version": "2"},
        {"effect": "read"},
        {"parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
    ],
)
def test_a_digest_changes_with_anything_that_a_model_or_recovery_goes_by(changed: dict[str, Any]):
    assert simple(**changed).digest() != simple().digest()


def test_a_toolset_has_each_name_once():
    with pytest.raises(Usage, match="two tools are called find"):
        Toolset([find, find])
    assert Toolset([find, RAW]).only(["raw"]).names == ["raw"]
    with pytest.raises(Usage, match="no tool 'x'"):
        Toolset([find]).only(["x"])
