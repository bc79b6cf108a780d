"""Operations on elements of type string, which are bytes: UTF-8, as far as an operation looks at characters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from ..terms import Array
from .patterns import matches

BLANKS: Final = b" \t\n\v\f\r"
"""The separators of substrings where no delimiter is stated."""


def joined(a: bytes, b: bytes) -> bytes:
    """One string behind the other."""
    return a + b


def pieces(text: bytes, delimiter: bytes, most: int) -> list[bytes]:
    """The substrings between delimiters, the rest behind the first `most` ones as it is; a negative number is no limit.

    Without a delimiter between blanks, any number of which together is one, and none of which begins or ends a string.
    """
    if delimiter:
        return text.split(delimiter, most) if text else []
    parts: list[bytes] = []
    rest = text.strip(BLANKS)
    while rest:
        end = next((k for k, c in enumerate(rest) if c in BLANKS), len(rest))
        if 0 <= most <= len(parts):
            end = len(rest)
        parts.append(rest[:end])
        rest = rest[end:].lstrip(BLANKS)
    return parts


def piece(text: bytes, delimiter: bytes, most: int, k: int) -> bytes:
    """The substring at a position; the empty string behind the last one."""
    parts = pieces(text, delimiter, most)
    return parts[k] if k < len(parts) else b""


NEWER: Final = frozenset({
    0x19B, 0x264, 0x1C89, 0x1C8A, *range(0xA7CB, 0xA7D0), *range(0xA7D2, 0xA7D6), *range(0xA7DA, 0xA7DD),
    *range(0x10D50, 0x10D86), *range(0x16EA0, 0x16ED4),
})  # fmt: skip
"""Letters that got the other case behind Unicode 14.0: the interpreter's tables may be newer."""


def _simple(letter: str, *, upper: bool) -> str:
    """The simple case mapping of a character, which is one character (UnicodeData.txt, fields 12 and 13)."""
    if ord(letter) in NEWER:
        return letter
    full = letter.upper() if upper else letter.lower()
    if len(full) == 1:
        return full
    if not upper:
        return full[0]  # U+0130 alone: i with a dot above
    title = letter.title()
    return title if len(title) == 1 else letter


def _cased(text: bytes, *, upper: bool) -> bytes:
    word = text.decode("utf-8", "surrogateescape")
    return "".join(_simple(c, upper=upper) for c in word).encode("utf-8", "surrogateescape")


def _each(function: Callable[..., object], kind: type) -> Callable[..., Array]:
    """The operation of single elements on arrays, which broadcast."""

    def run(*arrays: Array) -> Array:
        parts = np.broadcast_arrays(*arrays)
        made: Array = np.empty(parts[0].shape, kind)
        flat = made.reshape(-1)
        for position, row in enumerate(zip(*(part.reshape(-1).tolist() for part in parts), strict=True)):
            flat[position] = function(*row)
        return made

    return run


TEXT: Final[Mapping[str, Callable[..., Array]]] = {
    "joined": _each(joined, object),
    "pieces": _each(lambda text, delimiter, most: len(pieces(text, delimiter, most)), np.int64),
    "piece": _each(piece, object),
    "matches": _each(matches, np.bool_),
    "lowercase": _each(lambda text: _cased(text, upper=False), object),
    "uppercase": _each(lambda text: _cased(text, upper=True), object),
}
"""For each operation on strings what it is on arrays of them."""
