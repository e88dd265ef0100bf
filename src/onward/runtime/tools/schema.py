"""From a function's annotations to a JSON schema, and from what a model gave to arguments that the function takes.

A model gets all that is wrong in one answer, in words that it can act on.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgspec

from onward.errors import BadArguments

_ARGS = re.compile(r"^(?:Args|Arguments|Parameters):\s*$", re.MULTILINE)
_SECTION = re.compile(r"^(?:Returns|Raises|Yields|Example|Examples|Note|Notes):\s*$", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")
_AT = re.compile(r" - at `(\$[^`]*)`$")

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a function takes.

    Attributes:
        schema: JSON schema of an object.
        description: the docstring without its sections.
    """

    schema: dict[str, Any]
    description: str
    _types: dict[str, Any]
    _required: frozenset[str]
    _context: str | None

    @classmethod
    def of(cls, function: Callable[..., Any], context: type) -> Arguments:
        """Look at a function; the parameter annotated `context` is left out. Raises TypeError."""
        hints = get_type_hints(function, include_extras=True)
        documented = inspect.getdoc(function) or ""
        described = _descriptions(documented)
        types: dict[str, Any] = {}
        fields: list[Any] = []
        required: set[str] = set()
        takes_context = None
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise TypeError(f"{function.__qualname__}: {parameter} cannot be given by name, so a model cannot")
            if name not in hints:
                raise TypeError(f"{function.__qualname__}: the parameter {name} has no annotation")
            if hints[name] is context:
                takes_context = name
                continue
            types[name] = hints[name]
            if parameter.default is parameter.empty:
                required.add(name)
                fields.append((name, hints[name]))
            else:
                fields.append((name, hints[name], _default(parameter.default)))
        schema = _schema(fields)
        for name, text in described.items():
            if name in schema["properties"]:
                schema["properties"][name].setdefault("description", text)
        return cls(schema, _head(documented), types, frozenset(required), takes_context)

    def check(self, given: Any) -> dict[str, Any]:
        """The arguments as JSON, once they are sure to fit. Raises BadArguments."""
        arguments = as_object(given)
        self.convert(arguments)
        return arguments

    def convert(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments in the types of the annotations. Raises BadArguments.

        `null` for a parameter that need not be given counts as not given where its type has no null.
        """
        problems = _names(given, list(self._types), self._required)
        converted: dict[str, Any] = {}
        for name, value in given.items():
            if name not in self._types:
                continue
            try:
                converted[name] = msgspec.convert(value, self._types[name])
            except msgspec.ValidationError as error:
                if value is None and name not in self._required:
                    continue
                problems.append(_worded(name, str(error)))
        _raise(problems, self.schema)
        return converted

    def context(self, context: Any) -> dict[str, Any]:
        """The context as a keyword, if the function takes it."""
        return {} if self._context is None else {self._context: context}


def as_object(given: Any) -> dict[str, Any]:
    """What a model gave as an object; text is parsed, and no text at all is an empty object.

    Raises:
        BadArguments: it is none.
    """
    if isinstance(given, str):
        if not given.strip():
            return {}
        try:
            given = msgspec.json.decode(given.encode("utf-8", "surrogatepass"))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadArguments(
                f"The arguments are not valid JSON: {error}. Nothing was run. Call the tool again with one JSON object."
            ) from None
    if not isinstance(given, dict):
        raise BadArguments(
            f"The arguments must be one JSON object, not {_kind(given)}. Nothing was run. Call the tool again."
        )
    return given


def check_shape(schema: dict[str, Any], given: Any) -> dict[str, Any]:
    """Check arguments against the top level of a JSON schema: names, types, enumerations.

    What lies deeper is the tool's to check. Raises BadArguments.
    """
    arguments = as_object(given)
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    closed = schema.get("additionalProperties") is False
    known = list(properties) if closed else [*properties, *(name for name in arguments if name not in properties)]
    problems = _names(arguments, known, schema.get("required", ()))
    for name, value in arguments.items():
        rule = properties.get(name)
        if not isinstance(rule, dict):
            continue
        kinds = rule.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if isinstance(kinds, list) and not any(_is(value, kind) for kind in kinds):
            problems.append(f"`{name}` must be {' or '.join(map(str, kinds))}, not {_kind(value)}")
        elif isinstance(rule.get("enum"), list) and value not in rule["enum"]:
            allowed = ", ".join(msgspec.json.encode(item).decode() for item in rule["enum"])
            problems.append(f"`{name}` must be one of {allowed}")
    _raise(problems, schema)
    return arguments


def _names(given: dict[str, Any], known: Sequence[str], required: Any) -> list[str]:
    missing = [f"`{name}` is missing" for name in known if name in required and name not in given]
    missing += [f"`{name}` is missing" for name in required if name not in known and name not in given]
    return missing + [f"`{name}` is not a parameter" for name in given if name not in known]


def _raise(problems: list[str], schema: dict[str, Any]) -> None:
    if not problems:
        return
    required = schema.get("required", [])
    takes = [name if name in required else f"{name} (optional)" for name in schema.get("properties", {})]
    raise BadArguments(
        f"The arguments do not fit: {'; '.join(problems)}. Nothing was run. "
        f"Parameters: {', '.join(takes) if takes else 'none'}."
    )


def _worded(name: str, error: str) -> str:
    """`Expected `int`, got `str` - at `$[0]`` as a sentence about the parameter."""
    place = _AT.search(error)
    inner = place.group(1).removeprefix("$") if place else ""
    what = _AT.sub("", error)
    return f"`{name}{inner}`: {what[:1].lower()}{what[1:]}"


def _is(value: Any, kind: Any) -> bool:
    types = _KINDS.get(kind)
    if types is None:
        return True  # a type that no JSON schema has is not ours to judge
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types) or (kind == "integer" and isinstance(value, float) and value.is_integer())


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return next((kind for kind, types in _KINDS.items() if isinstance(value, types)), type(value).__name__)


def _default(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return msgspec.field(default_factory=lambda: value)  # not part of the schema: it may not be JSON


def _schema(fields: list[Any]) -> dict[str, Any]:
    """JSON schema of an object with these fields, its own level inlined (providers want no reference there)."""
    struct = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    _, components = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    own: dict[str, Any] = components.pop("Arguments")
    own.pop("title", None)
    if components:
        own["$defs"] = components
    return own


def _head(documented: str) -> str:
    """A docstring up to its first section."""
    ends = [found.start() for pattern in (_ARGS, _SECTION) if (found := pattern.search(documented))]
    return documented[: min(ends, default=None)].strip()


def _descriptions(documented: str) -> dict[str, str]:
    """The descriptions in a docstring's `Args:` section."""
    start = _ARGS.search(documented)
    if start is None:
        return {}
    rest = documented[start.end() :]
    end = _SECTION.search(rest)
    lines = inspect.cleandoc("\n" + (rest[: end.start()] if end else rest)).splitlines()
    found: dict[str, str] = {}
    name = None
    for line in lines:
        entry = _ENTRY.match(line)
        if entry is not None:
            name = entry.group(1)
            found[name] = entry.group(2).strip()
        elif name is not None and line[:1].isspace():
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found
