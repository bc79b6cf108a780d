"""A node that stored values decide: its value, element by element, by the rechecker's own evaluator of the texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import onnx
from numpy.typing import NDArray

from ..operators import elements as el
from ..operators.node import Site, examine
from ..operators.operations import read
from ..operators.schema import defaults, written
from ..operators.text import TextError
from ..operators.values import Constant, Dead, Element, Open, Tensor, Value
from .graphs import Node, State, Stored, array_digest, texts_digest

MOST = 20_000
"""So many elements of a value are evaluated here; a larger one is not."""
STEPS = 5_000_000
_DTYPES = {
    name: helper for code, name in ((code, name.lower()) for name, code in onnx.TensorProto.DataType.items())
    if (helper := None if code in (0, 8) else onnx.helper.tensor_dtype_to_np_dtype(code)) is not None
}  # fmt: skip


def folded(state: State, n: int, node: Node) -> tuple[Stored | None, ...] | str:
    """The values that a node gives from stored ones; in words why they are not derived here. Raises Dead where the
    node is stuck, as far as that is seen here."""
    if node.text is None or node.version is None:
        return "its operator has no text"
    walk = state.walk
    inputs = tuple(None if t is None else _input(state, t) for t in node.inputs)
    attributes = {**defaults(node.text, node.version), **written(node.attributes, f"n{n}")}
    present = tuple(t is not None for t in node.outputs)
    site = Site(f"{node.text.name}-{node.version}", node.text, node.version, inputs, attributes, present)
    failed: list[bool] = []

    def judge(position: int, goal: object) -> None:
        is_required = position < 0 or node.text is None or node.text.statements[position].kind == "require"
        if is_required and goal is not True:
            failed.append(goal is False)

    kept = walk.run.facts.copy()
    try:
        values = examine(site, walk.run, judge)
        if any(failed):
            raise Dead
        if failed:
            return "what its operator requires is not decided here"
        made = [_stored(state, value) if there else None for value, there in zip(values, present, strict=True)]
    except (Open, TextError) as problem:
        return str(problem)
    finally:
        walk.run.facts = kept
    reasons = [it for it in made if isinstance(it, str)]
    if reasons:
        return reasons[0]
    found: list[Stored | None] = []
    for t, it in zip(node.outputs, made, strict=True):
        if t is None or not isinstance(it, tuple):
            found.append(None)
            continue
        value, tensor = it
        walk.contents[t] = Tensor(
            f"t{t}#{walk.run.name('folded')}", tensor.kind, tensor.shape, constant=tensor.constant
        )
        found.append(value)
    return tuple(found)


def _input(state: State, t: int) -> Value:
    content = state.walk.contents.get(t)
    if isinstance(content, Tensor):
        return content
    raise Open("a stored value is not known here")


def _stored(state: State, value: Value | Open) -> tuple[Stored, Tensor] | str:
    """A value, with its elements."""
    if isinstance(value, Open):
        return value.reason
    if not isinstance(value, Tensor) or value.shape is None or not value.kind:
        return "it is no tensor of a known shape and type"
    shape = tuple(it for it in value.shape if isinstance(it, int))
    if len(shape) < len(value.shape):
        return "its size is not known"
    if value.constant is not None and value.constant.data is not None and value.constant.data.dtype.kind not in "OSU":
        data: NDArray[np.generic] | list[str] = value.constant.data
    else:
        if int(np.prod(shape, dtype=object)) > MOST:
            return f"it has more than {MOST} elements"
        elements: list[object] = []
        state.walk.run.steps = STEPS
        for index in product(*map(range, shape)):
            item = read(value, index, state.walk.run)
            number = _number(value.kind, item)
            if number is None:
                return "an element of it is not evaluated here"
            elements.append(number)
        if value.kind == "string":
            texts = [str(it) for it in elements]
            digest = texts_digest(it.encode("utf-8", "surrogateescape") for it in texts)
            array: NDArray[np.generic] = np.array(texts, dtype=object).reshape(shape)
            return _with(Stored(value.kind, shape, lambda: digest), array)
        if value.kind not in _DTYPES:
            return "an element of it is not evaluated here"
        data = np.array(elements, dtype=_DTYPES[value.kind]).reshape(shape)
    digest = array_digest(np.asarray(data))
    return _with(Stored(value.kind, shape, lambda: digest), np.asarray(data))


def _with(stored: Stored, data: NDArray[np.generic]) -> tuple[Stored, Tensor]:
    return stored, Tensor("", stored.kind, stored.dims, constant=Constant(lambda: data))


def _number(kind: str, item: Value) -> object | None:
    """An element as NumPy takes it; None for one that is not known."""
    value = el.as_element(kind, item).value if not isinstance(item, Element | tuple) else getattr(item, "value", None)
    if isinstance(value, bool | np.floating | str):
        return value
    if isinstance(value, int) and kind in (*el.INTEGERS, "bool"):
        return value
    return None


def spelled(values: Sequence[Stored | None]) -> list[Mapping[str, object] | None]:
    """Values as a certificate has them, without the tensors' numbers."""
    return [None if it is None else {"dims": list(it.dims), "element": it.kind, "sha256": it.digest()} for it in values]
