"""Executes the examples of the specification, and writes their values as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray
from sonnx.spec.elaborate.schema import FormalPort, Signature
from sonnx.spec.render.site.examples import Example, Executed, Value

from ..errors import Unsupported
from ..model.elements import DTYPES, dtype_of, element_of
from ..model.graph import ValueType
from ..model.loader.text import from_text
from ..model.path import quote
from ..model.values import Map, Optional, Sequence
from ..model.values import Value as Data
from ..operators.application import Application, AttributeData, Stuck
from ..operators.compiled.ieee import apply
from .execution import run
from .files.json_files import value_of
from .inputs import type_text
from .memory import type_of

Array = NDArray[np.generic]
WIDTH = 40
"""A tensor whose text is longer is written with one row on a line."""


def execute(example: Example, signature: Signature) -> Executed:
    """The example at one version of its operator. Raises Unsupported for what the interpretation does not know."""
    return _applied(example, signature) if not example.model else _run(example, signature.version)


def _run(example: Example, version: int) -> Executed:
    """The graph of an example, run by the machine."""
    text = f'<ir_version: 10, opset_import: ["": {version}]> {example.model}'
    inputs = {name: _value(given) for name, given in example.arguments.items()}
    done = run(from_text(text.encode()), inputs)
    given = (Value("graph", "", example.model), *(_shown(name, value) for name, value in inputs.items()))
    if done.stuck is not None:
        return Executed(given, (), f"{done.stuck.premise} {done.stuck.message}")
    return Executed(given, tuple(_shown(name, value) for name, value in done.outputs.items()))


def _applied(example: Example, signature: Signature) -> Executed:
    """The application of the operator, by the ieee interpretation."""
    inputs = tuple(value for port in signature.inputs for value in _inputs(port, example.arguments.get(port.name)))
    attributes = {
        name: _attribute(example.arguments[name]) for name in signature.attributes if name in example.arguments
    }
    while inputs and inputs[-1][1] is None:
        inputs = inputs[:-1]
    count = example.outputs or max(1, sum(port.mark != "?" for port in signature.outputs))
    application = Application(
        example.operator, signature.version, tuple(value for _, value in inputs), attributes, (True,) * count
    )
    given = tuple(_shown(name, value) for name, value in inputs if value is not None)
    stated = tuple(Value(name, *_attribute_text(value)) for name, value in attributes.items())
    outcome = apply(application)
    if isinstance(outcome, Stuck):
        return Executed((*given, *stated), (), f"{outcome.premise} {outcome.message}")
    free = outcome.free or (None,) * count
    names = _output_names(signature.outputs, count)
    results = (
        _shown(name, value, mask)
        for name, value, mask in zip(names, outcome.values, free, strict=True)
        if value is not None
    )
    return Executed((*given, *stated), tuple(results))


# ---- Values of an example ---------------------------------------------------------------------


def _inputs(port: FormalPort, given: object) -> Iterator[tuple[str, Data | None]]:
    """The inputs at a formal port, with the names under which they are shown."""
    if isinstance(given, list) and port.mark == "*":
        yield from ((f"{port.name}[{position}]", _value(item)) for position, item in enumerate(given))
    else:
        yield port.name, None if given is None else _value(given)


def _value(given: object) -> Data:
    """The tensor, the sequence of tensors, the optional or the map that an argument stands for."""
    if isinstance(given, list):
        items = tuple(tensor(item) for item in given)
        return Sequence(_type_of(items[0]), items)
    if isinstance(given, Mapping) and "optional" in given:
        item = tensor(given["optional"])
        return Optional(_type_of(item), item)
    if isinstance(given, Mapping) and "map" in given:
        key, value = (str(given.get(side, "float")) for side in ("from", "to"))
        return value_of(dict(given["map"]), ValueType("map", key, inner=ValueType("tensor", value)))
    return tensor(given)


def _type_of(item: Array) -> ValueType:
    return ValueType("tensor", element_of(item.dtype))


def tensor(given: object) -> Array:
    """The tensor that a table `{element type = data}` stands for. Raises Unsupported for anything else."""
    table = given if isinstance(given, Mapping) else {}
    element = next((key for key in table if key in DTYPES), None)
    if element is None:
        raise Unsupported(f"{given!r} is no tensor")
    data, shape, dtype = table[element], table.get("shape"), dtype_of(element)
    if data == "count":
        made = np.arange(1, int(np.prod(shape or (1,))) + 1).astype(dtype)
    elif element == "string":
        made = np.array(_encoded(data), object)
    else:
        made = np.array(data, np.float64 if dtype.kind not in "biuc" else dtype).astype(dtype)
    return made if shape is None else made.reshape(shape)


def _encoded(data: object) -> object:
    return [_encoded(item) for item in data] if isinstance(data, list) else str(data).encode()


def _attribute(given: object) -> AttributeData:
    """An attribute as the interpretation takes it; a float is rounded to the float32 that a model would state."""
    if isinstance(given, float):
        return float(np.float32(given))
    if isinstance(given, list):
        if any(isinstance(item, float) for item in given):
            return tuple(float(np.float32(item)) for item in given)
        return tuple(given)
    return given if isinstance(given, int | str) else tensor(given)


# ---- Values as text ---------------------------------------------------------------------------


def _output_names(ports: tuple[FormalPort, ...], count: int) -> list[str]:
    names = [port.name for port in ports]
    if ports and ports[-1].mark == "*":
        names[-1:] = [f"{names[-1]}[{position}]" for position in range(count - len(names) + 1)]
    return names[:count]


def _shown(name: str, value: Data, free: Array | None = None) -> Value:
    if isinstance(value, np.ndarray):
        return Value(name, _type(value), _text(value, free))
    if isinstance(value, Sequence):
        rows = "\n".join(f"{it.type}  {it.text}" for it in (_shown(name, item) for item in value.items))
        return Value(name, f"sequence of {len(value.items)}", rows)
    if isinstance(value, Map):
        keys = [quote(key.decode("utf-8", "replace")) if isinstance(key, bytes) else str(key) for key, _ in value.items]
        items = [item for _, item in value.items if isinstance(item, np.ndarray)]
        texts = [f"{key}: {_text(item)}" for key, item in zip(keys, items, strict=True)]
        return Value(name, type_text(type_of(value)), f"{{{', '.join(texts)}}}")
    if isinstance(value, Optional) and value.item is not None:
        inner = _shown(name, value.item)
        return Value(name, f"optional {inner.type}", inner.text)
    raise Unsupported(f"{name} is an optional that holds nothing")


def _type(value: Array) -> str:
    return f"{element_of(value.dtype)}[{', '.join(map(str, value.shape))}]"


def _attribute_text(value: AttributeData) -> tuple[str, str]:
    if isinstance(value, np.ndarray):
        return _type(value), _text(value)
    if isinstance(value, tuple):
        return "", f"[{', '.join(_attribute_text(item)[1] for item in value)}]"
    if isinstance(value, str):
        return "", f'"{value}"'
    return "", _number(np.float32(value)) if isinstance(value, float) else str(value)


def _text(value: Array, free: Array | None = None) -> str:
    """The elements between nested brackets; `any` for one that the text leaves open."""
    words = [_element(item) for item in value.reshape(-1)]
    if free is not None:
        words = ["any" if is_free else word for word, is_free in zip(words, free.reshape(-1), strict=True)]
    line = _nested(words, value.shape, ", ")
    if len(line) <= WIDTH:
        return line
    width = max(map(len, words))
    return _nested([word.rjust(width) for word in words], value.shape, ",\n")


def _nested(words: list[str], shape: tuple[int, ...], between: str, depth: int = 1) -> str:
    if not shape:
        return words[0]
    if len(shape) == 1:
        return f"[{', '.join(words)}]"
    size = math.prod(shape[1:])
    rows = (words[size * row : size * (row + 1)] for row in range(shape[0]))
    separator = between + " " * depth if "\n" in between else between
    return f"[{separator.join(_nested(row, shape[1:], between, depth + 1) for row in rows)}]"


def _element(item: object) -> str:
    if isinstance(item, bytes):
        return f'"{item.decode(errors="replace")}"'
    if isinstance(item, np.bool_):
        return str(bool(item)).lower()
    if isinstance(item, np.integer):
        return str(int(item))
    return _number(item)


def _number(item: object) -> str:
    """A number with as few digits as its type needs; a whole one without its point, but for -0.0."""
    text = str(item)
    return text if text == "-0.0" else text.removesuffix(".0")
