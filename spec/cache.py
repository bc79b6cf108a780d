"""The cache of parsed specification text: JSON in a per-user folder, keyed by content digest, never trusted.

An entry is two lines: a header with the key and the SHA-256 of the second line, and the declarations as JSON. Whatever
is wrong with an entry or with the folder, the answer is None and the caller parses the text.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import types
import typing
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from . import syntax
from .syntax import HEADS, Expr, File, Span

Json = None | bool | int | str | list["Json"]

CLASSES: tuple[type[Any], ...] = (
    syntax.Span,
    syntax.Sort,
    syntax.Expr,
    syntax.Binder,
    syntax.Range,
    syntax.Arm,
    syntax.Keyword,
    syntax.Clause,
    syntax.Parameter,
    syntax.SortDeclaration,
    syntax.Accuracy,
    syntax.FunctionDeclaration,
    syntax.Constraint,
    syntax.Premise,
    syntax.Transition,
    syntax.Property,
    syntax.ProfileRule,
    syntax.Profile,
    syntax.Port,
    syntax.Statement,
    syntax.Operator,
    syntax.File,
)
"""The classes of the syntax. An object is a JSON list of its position here plus 1 and its fields."""

SCALARS = frozenset({str, int, bool, type(None)})
SPAN = (int, str, int, int, int, int)
"""The types in the encoding of a span, the most frequent object by far."""

LANGUAGE = ("language.lark", "syntax.py", "parse.py", "parse_expr.py", "cache.py")
"""The files that decide what a text parses to."""


class Malformed(ValueError):  # noqa: N818 - named for what the data is
    """The data is not an encoding of the syntax."""


# ---- Syntax as JSON ---------------------------------------------------------------------------


def encode(value: object) -> Json:
    """The JSON of a value of the syntax, spans included. A tuple is a list that starts with 0."""
    match value:
        case None | bool() | int() | str():
            return value
        case tuple():
            return [0, *(encode(item) for item in value)]
        case _:
            return [CLASSES.index(type(value)) + 1, *(encode(getattr(value, f.name)) for f in fields(value))]  # type: ignore[arg-type]


def decode(data: object) -> object:
    """The value that `data` encodes. Raises Malformed when a class, a field or its type is not that of the syntax."""
    if type(data) in SCALARS:
        return data
    if type(data) is not list or not data:
        raise Malformed(f"a {type(data).__name__} is no part of the syntax")
    tag = data[0]
    if tag == 1 and tuple(map(type, data)) == SPAN:
        return Span(*data[1:])
    if type(tag) is not int or not 0 <= tag <= len(CLASSES):
        raise Malformed("a list without a tag")
    values = [item if type(item) in SCALARS else decode(item) for item in data[1:]]
    if tag == 0:
        return tuple(values)
    for position, hint in _open_fields(tag, tuple(map(type, values))):
        if not _fits(values[position], hint):
            raise Malformed(f"{CLASSES[tag - 1].__name__}: field {position}")
    made: object = CLASSES[tag - 1](*values)
    if type(made) is Expr and made.head not in HEADS:
        raise Malformed("an expression with an unknown head")
    return made


@cache
def _open_fields(tag: int, kinds: tuple[type, ...]) -> tuple[tuple[int, object], ...]:
    """The fields whose type alone, one of `kinds`, does not say that they fit: the tuples, with their annotations."""
    hints = tuple(typing.get_type_hints(CLASSES[tag - 1]).values())
    if len(hints) != len(kinds):
        raise Malformed(f"not the fields of {CLASSES[tag - 1].__name__}")
    fields_ = tuple(enumerate(zip(kinds, hints, strict=True)))
    for position, (kind, hint) in fields_:
        if kind not in _kinds(hint):
            raise Malformed(f"{CLASSES[tag - 1].__name__}: field {position}")
    return tuple((position, hint) for position, (kind, hint) in fields_ if kind is tuple)


@cache
def _options(hint: object) -> tuple[object, ...]:
    """The alternatives of an annotation."""
    return typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)


@cache
def _kinds(hint: object) -> frozenset[object]:
    """The exact types of the values that an annotation admits."""
    return frozenset(typing.get_origin(option) or option for option in _options(hint))


def _fits(value: object, hint: object) -> bool:
    """The value has the annotated type, exactly, down to the items of tuples (objects were tested when made)."""
    if type(value) is not tuple:
        return type(value) in _kinds(hint)
    return any(
        _items_fit(value, typing.get_args(option)) for option in _options(hint) if typing.get_origin(option) is tuple
    )


def _items_fit(items: tuple[object, ...], hints: tuple[object, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        kinds = set(map(type, items))
        return kinds <= _kinds(hints[0]) and (tuple not in kinds or all(_fits(item, hints[0]) for item in items))
    return len(items) == len(hints) and all(_fits(item, hint) for item, hint in zip(items, hints, strict=True))


# ---- Entries ----------------------------------------------------------------------------------


@cache
def language_digest() -> str:
    """The digest of the files that decide what a text parses to."""
    here = Path(__file__).parent
    hashed = hashlib.sha256()
    for name in LANGUAGE:
        hashed.update(hashlib.sha256((here / name).read_bytes()).digest())
    return hashed.hexdigest()


def key_of(*parts: str) -> str:
    """The key of an entry about the given texts: a digest over them and the language."""
    return hashlib.sha256("\n".join((language_digest(), *parts)).encode()).hexdigest()


def folder() -> Path | None:
    """The folder of the cache: SONNX_CACHE if set, else `sonnx` in the user's cache folder; None without a home."""
    chosen = os.environ.get("SONNX_CACHE")
    if chosen:
        return Path(chosen)
    variable, default = {
        "win32": ("LOCALAPPDATA", "~/AppData/Local"),
        "darwin": ("", "~/Library/Caches"),
    }.get(sys.platform, ("XDG_CACHE_HOME", "~/.cache"))
    base = os.environ.get(variable, "")
    try:
        return (Path(base) if Path(base).is_absolute() else Path(default).expanduser()) / "sonnx"
    except RuntimeError:
        return None


def _own(path: Path) -> bool:
    """The folder is the user's own: nobody else can have written the entries. Always true where files have no owner."""
    if not hasattr(os, "geteuid"):
        return True
    status = path.lstat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def load(key: str) -> object:
    """The value stored under the key, None without a sound entry."""
    place = folder()
    try:
        if place is None or not _own(place):
            return None
        header, payload = (place / f"{key}.json").read_bytes().split(b"\n")
        if json.loads(header) != [key, hashlib.sha256(payload).hexdigest()]:
            return None
        return decode(json.loads(payload))
    except (OSError, ValueError, RecursionError):
        return None


def load_file(key: str, name: str) -> File | None:
    """The parsed file `name` stored under the key, None without a sound entry."""
    found = load(key)
    return found if isinstance(found, File) and found.name == name else None


def store(key: str, value: object) -> None:
    """Stores the value under the key, whole or not at all. A folder that cannot be written is no error."""
    place = folder()
    if place is None:
        return
    payload = json.dumps(encode(value), separators=(",", ":")).encode()
    header = json.dumps([key, hashlib.sha256(payload).hexdigest()]).encode()
    draft = place / f"{key}.{os.getpid()}.draft"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _own(place):
            return
        try:
            draft.write_bytes(header + b"\n" + payload)
            draft.replace(place / f"{key}.json")
        finally:
            draft.unlink(missing_ok=True)
    except (OSError, RecursionError):
        return
