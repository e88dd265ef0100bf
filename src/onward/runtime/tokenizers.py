"""Exact tokenizers: OpenAI's vocabularies by tiktoken (the extra `onward[tokens]`).

tiktoken gets a vocabulary from the network the first time that it is asked for one, and keeps it in a folder
(`TIKTOKEN_CACHE_DIR`). Where there is no network, give an encoding that is at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from onward.errors import Refused, Usage


class Encoding(Protocol):
    """What is asked of an encoding: tiktoken's and those that look like it."""

    def encode_ordinary(self, text: str, /) -> Sequence[int]:
        """A text's tokens; what looks like a special token is text too."""
        ...


class Tiktoken:
    """Counts text by one of tiktoken's encodings. Fits `Session.count(tokenizer=…)`.

    Args:
        encoding: an encoding's name (`o200k_base`), or the encoding itself.
        model: instead of it, the name of a model of OpenAI's.

    Raises:
        Usage: tiktoken is not installed, or knows no such encoding or model.
        Refused: its vocabulary is not here and cannot be fetched.
    """

    def __init__(self, encoding: str | Encoding | None = None, *, model: str | None = None) -> None:
        if (encoding is None) == (model is None):
            raise Usage("give an encoding or a model's name", hint='for example Tiktoken(model="gpt-5")')
        if encoding is None or isinstance(encoding, str):
            encoding = _load(encoding, model)
        self._encoding: Encoding = encoding

    def count_text(self, text: str) -> int:
        """Tokens of a text; 0 for an empty one."""
        return len(self._encoding.encode_ordinary(text))


def _load(encoding: str | None, model: str | None) -> Encoding:
    try:
        import tiktoken
    except ImportError:
        raise Usage("tiktoken is not installed", hint="pip install 'onward[tokens]'") from None
    try:
        if encoding is not None:
            return tiktoken.get_encoding(encoding)
        return tiktoken.encoding_for_model(str(model))
    except (KeyError, ValueError):
        what = f"no encoding {encoding!r}" if encoding is not None else f"no model {model!r}"
        raise Usage(f"tiktoken knows {what}", hint="tiktoken.list_encoding_names() names the encodings") from None
    except OSError as error:
        raise Refused(
            f"the vocabulary of {encoding or model!r} is not here and could not be fetched: {error}",
            hint="set TIKTOKEN_CACHE_DIR to a folder that has it, or give an encoding that is at hand",
        ) from error
