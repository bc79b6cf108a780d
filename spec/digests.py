"""Digests that name what a report rests on: the texts of the specification, and the code that judged by them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from .library import Specification

LAYERS: Final = ("spec", "semantics", "checker", "proofs")
CODE: Final = (".py", ".lark")
"""The suffixes of the files that a program of this package is made of."""


def of_texts(specification: Specification) -> str:
    """SHA-256 over the names and digests of all texts, those that users added among them."""
    return _joined(specification.digests.items())


@cache
def of_code() -> str:
    """SHA-256 over the names and digests of the modules and grammars of the installed layers."""
    return _joined(
        (f"{layer}/{path.relative_to(folder).as_posix()}", hashlib.sha256(path.read_bytes()).hexdigest())
        for layer in LAYERS
        if (found := find_spec(f"sonnx.{layer}")) is not None
        for folder in map(Path, found.submodule_search_locations or ())
        for path in folder.rglob("*")
        if path.suffix in CODE
    )


def _joined(named: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256("".join(f"{name} {digest}\n" for name, digest in sorted(named)).encode()).hexdigest()
