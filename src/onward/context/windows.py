"""How many tokens a model's window has, as far as it is known: of the families that are in wide use, by their names."""

from __future__ import annotations

from onward.model.messages import Model

WINDOWS: tuple[tuple[str, int], ...] = (
    ("claude", 200_000),
    ("gpt-5", 272_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("codex-mini", 200_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini", 1_048_576),
    ("deepseek", 128_000),
    ("grok-4", 256_000),
    ("grok-3", 131_072),
    ("kimi-k2", 256_000),
    ("glm-4", 128_000),
    ("qwen3-coder", 262_144),
    ("mistral-large", 128_000),
    ("devstral", 128_000),
)
"""Beginning of a model's name -> tokens of its input window, as the makers' model pages give them; the longest
beginning that fits counts. Where they offer a larger window for more money or behind a flag, the smaller one:
compacting too early costs less than a refused request. GPT-5's window of 400,000 has room for 272,000 of input."""


def window_of(model: Model | None) -> int | None:
    """The window of a model in tokens, or None where it is not known."""
    if model is None:
        return None
    name = model.name.lower()
    names = {name, name.rpartition("/")[2], name.rpartition(".")[2], name.rpartition(":")[2]}
    fitting = [(len(start), tokens) for start, tokens in WINDOWS if any(_is(one, start) for one in names)]
    return max(fitting)[1] if fitting else None


def _is(name: str, start: str) -> bool:
    return name == start or (name.startswith(start) and not name[len(start)].isalpha())
