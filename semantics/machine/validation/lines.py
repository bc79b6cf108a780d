"""The lines of a trace: read one after the other, in the one spelling that they have, each with its hash.

The form is that of version 2, which the docstring of `semantics/machine/trace/format.py` describes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NoReturn, TypeGuard

from ...errors import ModelError
from ...model.graph import Model, ValueType
from ...model.path import quote

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]
"""What a line holds; a trace has no fractions."""
Object = dict[str, Json]

VERSION: Final = 2
_LONGEST: Final = 1 << 28  # bytes of a line
_MOST: Final = ((b"[", 1 << 21), (b"{", 1 << 20), (b",", 1 << 22))
"""How many lists, objects and parts a line may have: in memory each takes many times its bytes in the file."""
_BLOCK: Final = 1 << 16
_DEEPEST: Final = 32  # of types in types
_SHOWN: Final = 100
_HEAD: Final = frozenset({"sonnx", "version", "model", "inputs", "stored", "schedule", "allocation", "alignment"})
_STEP: Final = frozenset({"step", "rule", "node", "reads", "writes", "freed"})
_ENDING: Final = frozenset({"run", "runs", "kept"})
_END: Final = frozenset({"end", "memory", "outputs", "stuck"})


@dataclass(frozen=True, slots=True)
class Placed:
    """A value that is written, or there from the beginning, as the trace says it; offset is None for an initializer."""

    tensor: str
    type: Json
    sha256: str
    length: int
    at: int
    offset: int | None


@dataclass(frozen=True, slots=True)
class Head:
    """The first line. draws: the seed of random numbers."""

    inputs: tuple[Placed, ...]
    stored: tuple[Placed, ...]
    schedule: str
    reuse: bool
    alignment: int
    draws: int
    model: Json


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that did not end well, as the trace says it."""

    rule: str
    premise: str
    node: str
    budget: int | None


@dataclass(frozen=True, slots=True)
class End:
    """The last line. memory: N."""

    steps: int
    memory: int
    outputs: Json
    stuck: Claim | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its number, what it says without its hash, the hash that it says, and the one that it has."""

    number: int
    content: Object
    stated: str
    chain: str


class Lines:
    """The lines of a trace in a file. The last one is read first, since it says how large M is.

    Raises ModelError, of one line, for a file that is no trace, or was cut off.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not path.is_file():
            raise ModelError(f"{quote(str(path))} is no file that can be read twice: give the file that --trace wrote")
        self._file: IO[bytes] = path.open("rb")
        try:
            text = self._last_line()
            last, _ = _parsed(text, f"{quote(str(path))}: the last line")
        except BaseException:
            self._file.close()
            raise
        self.last = text
        self.end = last if "end" in last else None

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[Line]:
        """All lines, the last one too."""
        chain, number = "", 0
        self._file.seek(0)
        while text := self._file.readline(_LONGEST):
            number += 1
            content, stated = _parsed(text, f"{quote(str(self.path))}: line {number}")
            yield Line(number, content, stated, _hash(chain, text, content, stated))
            chain = stated

    def _last_line(self) -> bytes:
        size = at = self._file.seek(0, 2)
        blocks: list[bytes] = []
        while at and size - at < _LONGEST:
            start = max(0, at - _BLOCK)
            self._file.seek(start)
            block = self._file.read(at - start)
            blocks.append(block)
            at = start
            if b"\n" in (block[:-1] if len(blocks) == 1 else block):
                break
        text = b"".join(reversed(blocks))
        if not text:
            raise ModelError(f"{quote(str(self.path))} is empty, and no trace of `sonnx run`")
        return text[text.rfind(b"\n", 0, len(text) - 1) + 1 :]


def _hash(before: str, text: bytes, content: Object, stated: str) -> str:
    """The hash of a line in its one spelling, which is taken from the text: all but the hash that it says."""
    first = canonical({key: part for key, part in content.items() if key < "chain"})
    start, said = len(first) - 1, f'"chain":{canonical(stated)}'
    end = start + len(said) + int(len(first) > 2)  # with the comma before it
    if len(first) == 2 and text[end : end + 1] == b",":
        end += 1
    found, whole = hashlib.sha256(f"{before}\n".encode()), memoryview(text)
    found.update(whole[:start])
    found.update(whole[end:-1])
    return found.hexdigest()


def canonical(content: Json) -> str:
    """JSON of one spelling: keys sorted, no blanks, ASCII."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def shown(content: Json) -> str:
    """A part of a line in few characters."""
    text = canonical(content)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def _parsed(text: bytes, where: str) -> tuple[Object, str]:
    """A line without its hash, and that hash."""
    if any(text.count(mark) > most for mark, most in _MOST):
        raise ModelError(f"{where} has too many parts: at most 2**20 values of a line are read")
    try:
        content = json.loads(text, parse_float=_refused, parse_constant=_refused) if len(text) < _LONGEST else None
        if isinstance(content, dict):
            spelled = canonical(content).encode("ascii")
            stated = content.pop("chain", None)
            same = len(text) == len(spelled) + 1 and text.startswith(spelled) and text.endswith(b"\n")
            if same and isinstance(stated, str):
                return content, stated
    except (ValueError, RecursionError, UnicodeError):
        pass
    cut = "" if text.endswith(b"\n") else ": the trace was cut off"
    raise ModelError(f"{where} is no line of a trace{cut}; make the trace again with `sonnx run --trace`")


def _refused(text: str) -> NoReturn:
    raise ValueError(text)


# ---- Forms ------------------------------------------------------------------------------------


def head(line: Line, path: Path) -> Head:
    """The first line. Raises ModelError when it is none of this version."""
    content = line.content
    if content.get("sonnx") != "trace":
        raise ModelError(f"{quote(str(path))} is no trace of `sonnx run`: give the file that --trace wrote")
    if not _is_number(content.get("version")) or content["version"] != VERSION:
        raise ModelError(
            f"{quote(str(path))} is a trace of version {shown(content.get('version'))}, not {VERSION}:"
            " make it again with `sonnx run --trace`"
        )
    match content:
        case {"schedule": str() as schedule, "alignment": int() as alignment, "model": model} if (
            content.keys() - {"draws"} == _HEAD
            and content["allocation"] in ("simple", "arena")
            and _is_number(alignment)
            and alignment > 0
        ):
            draws = content.get("draws", 0)
            if isinstance(draws, int) and not isinstance(draws, bool) and draws >= 0:
                inputs = _values(content["inputs"], "offset", line.number)
                return Head(
                    inputs,
                    _values(content["stored"], "stored", line.number),
                    schedule,
                    content["allocation"] == "arena",
                    alignment,
                    draws,
                    model,
                )
    raise _malformed(f"line {line.number}")


def step(line: Line) -> tuple[str, str, tuple[Placed, ...], tuple[int, ...]]:
    """Rule, node, writes and freed addresses of a step. Raises ModelError when the line is none."""
    content = line.content
    match content:
        case {"rule": str() as rule, "node": str() as node, "freed": list() as freed} if content.keys() in (
            _STEP,
            _STEP | _ENDING,
        ):
            addresses = tuple(it for it in freed if _is_number(it))
            if len(addresses) == len(freed):
                return rule, node, _values(content["writes"], "offset", line.number), addresses
    raise _malformed(f"line {line.number}")


def end(content: Object) -> End:
    """The last line. Raises ModelError when it is none."""
    match content:
        case {"end": int() as steps, "memory": int() as memory, "outputs": outputs, "stuck": stuck} if (
            content.keys() - {"consistent"} == _END
            and _is_number(steps)
            and _is_number(memory)
            and _is_number(content.get("consistent", 0))
        ):
            return End(steps, memory, outputs, _claim(stuck))
    raise _malformed("the last line")


def _claim(stuck: Json) -> Claim | None:
    match stuck:
        case None:
            return None
        case {
            "rule": str() as rule,
            "premise": str() as premise,
            "message": str(),
            "node": str() as node,
            "budget": budget,
            **rest,
        } if not rest and (budget is None or _is_number(budget)):
            return Claim(rule, premise, node, budget)
    raise _malformed("the last line")


def _values(entries: Json, place: str, number: int) -> tuple[Placed, ...]:
    """Values, each with the key `place`, which is offset or stored."""
    found: list[Placed] = []
    for entry in entries if isinstance(entries, list) else [None]:
        match entry:
            case {
                "tensor": str() as tensor,
                "type": type_,
                "sha256": str() as sha256,
                "length": length,
                "at": at,
                **rest,
            } if rest.keys() == {place} and _is_number(length) and _is_number(at):
                offset = rest[place]
                if place == "offset" and _is_number(offset):
                    found.append(Placed(tensor, type_, sha256, length, at, offset))
                    continue
                if place == "stored" and offset is True:
                    found.append(Placed(tensor, type_, sha256, length, at, None))
                    continue
        raise _malformed(f"line {number}")
    return tuple(found)


def _is_number(item: object) -> TypeGuard[int]:
    """A whole number from 0 on that a file of today can speak of."""
    return isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 1 << 63


def _malformed(where: str) -> ModelError:
    return ModelError(f"{where} of the trace has not the form that it should have: make the trace again")


# ---- Types and models -------------------------------------------------------------------------


def type_to_json(type_: ValueType) -> Json:
    """A type: [kind, element, shape, inner]."""
    shape: Json = None if type_.shape is None else list(type_.shape)
    return [type_.kind, type_.element, shape, None if type_.inner is None else type_to_json(type_.inner)]


def type_from_json(data: Json, depth: int = 0) -> ValueType | None:
    """The inverse; None for what is no type."""
    match data:
        case [str() as kind, str() as element, None | list() as shape, inner] if depth < _DEEPEST:
            within = None if inner is None else type_from_json(inner, depth + 1)
            sizes = (
                None
                if shape is None
                else tuple(it for it in shape if it is None or isinstance(it, str) or _is_number(it))
            )
            if (inner is None or within is not None) and (sizes is None or shape is None or len(sizes) == len(shape)):
                return ValueType(kind, element, sizes, within)
    return None


def model_digest(model: Model) -> Json:
    """The files of a model with their digests, or the digest of one given in memory."""
    if not model.files:
        return [{"name": "", "sha256": hashlib.sha256(model.content).hexdigest()}]
    return [{"name": file.name, "sha256": file.sha256} for file in model.files]


def difference(says: Json, holds: Json, place: str = "") -> tuple[str, Json, Json]:
    """The first place at which two parts of lines differ, with what each has there. They differ somewhere."""
    if isinstance(says, dict) and isinstance(holds, dict) and says.keys() == holds.keys():
        for key in sorted(says):
            if canonical(says[key]) != canonical(holds[key]):
                return difference(says[key], holds[key], f"{place}.{key}" if place else key)
    if isinstance(says, list) and isinstance(holds, list) and len(says) == len(holds):
        for number, (one, other) in enumerate(zip(says, holds, strict=True)):
            if canonical(one) != canonical(other):
                return difference(one, other, f"{place}[{number}]")
    return place, says, holds
