"""Traces that are changed by somebody who knows how they are made: places, digests and hashes are made right again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from sonnx.semantics.machine.trace.format import SUFFIX, canonical, chained

Line = dict[str, Any]


class Forged:
    """The lines of a trace, the first of them the head, the last the end, and the bytes of its values."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Line] = [json.loads(text) for text in path.read_text().splitlines()]
        self.values = bytearray(path.with_name(path.name + SUFFIX).read_bytes())

    def write(self, *, chain: bool = True) -> Path:
        """The files; with the hashes of the lines made right unless told otherwise."""
        before = ""
        for line in self.lines if chain else []:
            line.pop("chain", None)
            before = line["chain"] = chained(before, line)
        self.path.write_text("".join(canonical(line) + "\n" for line in self.lines))
        self.path.with_name(self.path.name + SUFFIX).write_bytes(self.values)
        return self.path

    def step(self, rule: str, number: int = 0) -> int:
        """The position of a line by its rule."""
        return [k for k, line in enumerate(self.lines) if line.get("rule") == rule][number]

    def references(self) -> Iterator[Line]:
        """All values that lines speak of."""
        yield from (it for line in self.lines for it in _references(line))

    def give(self, reference: Line, data: bytes) -> None:
        """Other bytes, as many, for a value that was written; all that speak of it say their digest."""
        offset, length = reference["offset"], reference["length"]
        self.values[offset : offset + length] = data
        digest = hashlib.sha256(data).hexdigest()
        for it in self.references():
            if it.get("offset") == offset and it["length"] == length:
                it["sha256"] = digest

    def flip(self, reference: Line) -> None:
        """Another first byte for a value, as `give` does."""
        offset, length = reference["offset"], reference["length"]
        data = self.values[offset : offset + length]
        self.give(reference, bytes([data[0] ^ 1, *data[1:]]))

    def order(self, kept: list[int]) -> None:
        """Only these lines, in this order, counted anew; the bytes of their values lie in this order too."""
        lines, moved, values = [deepcopy(self.lines[k]) for k in kept], dict[int, int](), bytearray()
        for line in lines:
            for it in (*line.get("inputs", ()), *line.get("writes", ())):
                if it["length"]:
                    moved[it["offset"]] = len(values)
                values += self.values[it["offset"] : it["offset"] + it["length"]]
        self.lines, self.values = lines, values
        for it in self.references():
            if it.get("offset") in moved:
                it["offset"] = moved[it["offset"]]
        for number, line in enumerate(line for line in lines if "step" in line):
            line["step"] = number + 1
        lines[-1]["end"] = len(lines) - 2

    def drop(self, position: int) -> None:
        """Without a line, as `order` does."""
        self.order([k for k in range(len(self.lines)) if k != position])

    def exchange(self, one: int, other: int) -> None:
        """Two lines exchanged, as `order` does."""
        kept = list(range(len(self.lines)))
        kept[one], kept[other] = other, one
        self.order(kept)


def forged(path: Path, change: Callable[[Forged], object], *, chain: bool = True) -> Path:
    """The trace after a change."""
    made = Forged(path)
    change(made)
    return made.write(chain=chain)


def said(path: Path) -> list[Any]:
    """What a trace says of a run, wherever its values lie: inputs, rules, nodes and values."""
    lines = Forged(path).lines
    values = [[[it[key] for key in ("tensor", "type", "sha256")] for it in line.get("writes", ())] for line in lines]
    inputs = [it["sha256"] for it in lines[0]["inputs"]]
    return [inputs, [(line.get("rule"), line.get("node")) for line in lines], values, lines[-1]["outputs"]]


def leaves(content: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all that is no list and no object, and of what is empty."""
    if isinstance(content, dict) and content:
        for key, item in content.items():
            yield from leaves(item, (*at, key))
    elif isinstance(content, list) and content:
        for number, item in enumerate(content):
            yield from leaves(item, (*at, number))
    else:
        yield at


def put(content: Any, at: tuple[Any, ...], item: object) -> None:
    """Something else at a place."""
    for key in at[:-1]:
        content = content[key]
    content[at[-1]] = item


def _references(content: Any) -> Iterator[Line]:
    if isinstance(content, dict):
        if "sha256" in content and "length" in content:
            yield content
        else:
            yield from (it for item in content.values() for it in _references(item))
    elif isinstance(content, list):
        yield from (it for item in content for it in _references(item))
