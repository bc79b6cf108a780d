"""The inputs of a run: checked against what the model declares, or drawn from a seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

import numpy as np

from ..errors import ModelError
from ..model.elements import BITS, DTYPES, byte_size, dtype_of, integer_range, is_integer
from ..model.graph import Model, TensorId, ValueType
from ..model.path import quote
from ..model.values import Array, Map, Optional, Sequence, Value
from ..operators.application import initializers
from .memory import type_of

_LARGEST: Final = 1 << 34  # bytes of one input that is drawn
_TEXTS: Final = (b"", b"a", b"sonnx", b"caf\xc3\xa9")
_ADVICE: Final = dict.fromkeys("US", ": give texts as an array of dtype object with bytes in UTF-8")


Sizes = dict[str, tuple[int, str]]
"""The size of each dimension variable by its name, and in words what made it that."""


def declared_inputs(model: Model) -> dict[str, tuple[TensorId, ValueType | None, bool]]:
    """The inputs of the main graph by name: the tensor, its declared type, and whether a value must be given; an input
    that is an initializer too has that one by default."""
    graph = model.graphs[0]
    stored = {t for t, _ in initializers(graph)}
    types = graph.input_types or (None,) * len(graph.inputs)
    return {
        model.tensors[t].name: (t, stated or model.tensors[t].declared, t not in stored)
        for t, stated in zip(graph.inputs, types, strict=True)
    }


def bound_inputs(model: Model, inputs: Mapping[str, Value]) -> dict[TensorId, Value]:
    """The values by tensor. Raises ModelError for a missing or extra input and for a value of another type or shape.

    A dimension that has a name has the same size wherever the name stands among the inputs.
    """
    declared = declared_inputs(model)
    extra = [name for name in inputs if name not in declared]
    missing = [name for name, (_, _, needed) in declared.items() if needed and name not in inputs]
    if extra:
        close = get_close_matches(extra[0], declared, 1)
        hint = f"did you mean {quote(close[0])}?" if close else _expected(declared)
        raise ModelError(f"the model has no input {quote(extra[0])}: {hint}")
    if missing:
        names = ", ".join(f"{quote(name)}: {type_text(declared[name][1])}" for name in missing)
        which = f"the input{'s' * (len(missing) > 1)} {names}"
        raise ModelError(f"no value is given for {which}: give one by name among the inputs, or a seed for random ones")
    sizes: Sizes = {}
    bound = {}
    for name, value in inputs.items():
        t, stated, _ = declared[name]
        objection = _objection(value)
        if objection:
            raise ModelError(f"the input {quote(name)}, {type_text(stated)}, {objection}")
        bound[t] = _kept(value)
        wrong = stated and (contradiction("input", name, value, stated, sizes) or _entry(name, value, stated))
        if wrong is not None:
            raise ModelError(wrong)
    return bound


def _expected(declared: Mapping[str, tuple[TensorId, ValueType | None, bool]]) -> str:
    if not declared:
        return "it has none"
    shown = [f"{quote(name)}: {type_text(stated)}" for name, (_, stated, _) in list(declared.items())[:8]]
    return f"it has {', '.join(shown)}{' and more' if len(declared) > 8 else ''}"


def _objection(value: object) -> str:
    """Why an object of a caller is no value, as the end of a sentence; empty where it is one."""
    match value:
        case np.ndarray() if value.dtype == object:
            others = (type(it).__name__ for it in value.flat if not isinstance(it, bytes))
            other = next(others, "")
            return other and f"holds an entry of the Python type {other}: write texts as bytes in UTF-8"
        case np.ndarray() if value.dtype not in DTYPES.values():
            return f"has the NumPy type {value.dtype}, which ONNX has not{_ADVICE.get(value.dtype.kind, '')}"
        case np.ndarray():
            return ""
        case Sequence():
            return next(filter(None, map(_objection, value.items)), "")
        case Optional():
            return "" if value.item is None else _objection(value.item)
        case Map():
            keys = [key for key, _ in value.items]
            if not all(_is_key(key, value.key) for key in keys) or keys != sorted(set(keys)):
                return f"is a map whose keys are no {value.key} in ascending order, each once: sort its items"
            return next(filter(None, (_objection(item) for _, item in value.items)), "")
        case _:
            advice = "give a NumPy array, or a Sequence, Optional or Map of sonnx.semantics.model.values"
            return f"is given as an object of the Python type {type(value).__name__}: {advice}"


def _is_key(key: object, element: str) -> bool:
    """True if an object of a caller is a key of a map with keys of this type."""
    if element == "string":
        return type(key) is bytes
    dtype = DTYPES.get(element)
    if type(key) is not int or dtype is None or not is_integer(dtype):
        return False
    low, high = integer_range(dtype)
    return low <= key <= high


def _kept(value: Value) -> Value:
    """The value in memory that the caller does not write: M takes arrays over without a copy."""
    if not isinstance(value, np.ndarray):
        return value
    return np.array(value, order="C") if value.flags.writeable else np.ascontiguousarray(value).reshape(value.shape)


def contradiction(role: str, name: str, value: Value, stated: ValueType, sizes: Sizes) -> str | None:
    """In what a value contradicts its declared type, as a sentence; None where it fits. role: input, output, or what
    else it is called.

    sizes: of the dimension variables met so far; those of this value are added.
    """
    where, type_ = f"the {role} {quote(name)}", type_of(value)
    if not _fits(value, stated):
        return f"{where} is {type_text(type_)}, expected {type_text(stated)}"
    return _unlike(where, type_, stated, sizes, "computed" if role == "output" else "given")


def _unlike(where: str, type_: ValueType, stated: ValueType, sizes: Sizes, come: str) -> str | None:
    """In what the type of a tensor contradicts a declared one, as a sentence; None where it fits.

    come: how the tensor came to be. sizes: as in `contradiction`.
    """
    if not _type_fits(type_, stated):
        return f"{where} is {type_text(type_)}, expected {type_text(stated)}"
    if stated.kind not in ("tensor", "sparse_tensor") or stated.shape is None or type_.shape is None:
        return None
    if len(type_.shape) != len(stated.shape):
        return (
            f"{where} has {len(type_.shape)} dimensions {list(type_.shape)}, expected {len(stated.shape)}:"
            f" {type_text(stated)}"
        )
    for axis, (size, wanted) in enumerate(zip(type_.shape, stated.shape, strict=True)):
        if isinstance(wanted, int) and wanted >= 0 and size != wanted:
            return (
                f"{where} has size {size} along axis {axis}, expected {wanted}: {type_text(stated)}, {come}"
                f" {list(type_.shape)}"
            )
        if isinstance(wanted, str) and wanted and isinstance(size, int):
            before, by = sizes.setdefault(wanted, (size, where))
            if before != size:
                return (
                    f"{where} has size {size} along axis {axis}, which is called {quote(wanted)}, and {by} made that"
                    f" {before}: {type_text(stated)}, {come} {list(type_.shape)}"
                )
    return None


def _entry(name: str, value: Value, stated: ValueType) -> str | None:
    """In what an entry of an input contradicts the declared rank and sizes, which certificates take for granted; None
    where all fit. A dimension variable admits any size: in ONNX's tests of SequenceMap it differs from entry to entry.
    """
    inner = stated.inner
    match value:
        case Sequence():
            items = value.items
        case Optional():
            items = () if value.item is None else (value.item,)
        case Map():
            items = tuple(item for _, item in value.items)
            if any(isinstance(item, np.ndarray) and item.size != 1 for item in items):
                return f"the input {quote(name)} holds a map with values that are no single elements"
        case _:
            if stated.shape is None or _admits(value.shape, stated.shape):
                return None
            return f"the input {quote(name)} holds {type_text(type_of(value))}, expected {type_text(stated)}"
    entries = (_entry(name, item, inner) for item in items if inner is not None)
    return next(filter(None, entries), None)


def _admits(shape: tuple[int, ...], stated: tuple[int | str | None, ...]) -> bool:
    """True if a shape has the declared number of axes and the sizes that are declared as numbers."""
    wanted = [size if isinstance(size, int) and size >= 0 else None for size in stated]
    return len(shape) == len(wanted) and all(w in (None, size) for size, w in zip(shape, wanted, strict=True))


def contradicted(
    model: Model, given: Mapping[TensorId, ValueType], outputs: Mapping[TensorId, Value | None]
) -> str | None:
    """In what an input or output of the main graph contradicts its declaration, as a sentence: AsDeclared of part 3.

    given: the types of the inputs that have a value; they fix the sizes of dimension variables first. An input that is
    not given has its stored value. outputs: those that are there.
    """
    main, sizes = model.graphs[0], sizes_given(model, given)
    defaults = _defaults(model)
    for t, stated in zip(main.inputs, main.input_types, strict=False):
        type_ = given.get(t) or defaults.get(t)
        if type_ is not None and stated is not None:
            come = "stored" if t in defaults else "given"
            wrong = _unlike(f"the input {quote(model.tensors[t].name)}", type_, stated, sizes, come)
            if wrong is not None:
                return wrong
    for t, stated in zip(main.outputs, main.output_types, strict=False):
        value = outputs.get(t)
        if stated is not None and value is not None:
            wrong = contradiction("output", model.tensors[t].name, value, stated, sizes)
            if wrong is not None:
                return wrong
    return None


def sizes_given(model: Model, given: Mapping[TensorId, ValueType]) -> Sizes:
    """The sizes of the dimension variables that the types of the inputs fix, and by which input.

    An input that is not given has the type of its stored value, where it has one.
    """
    main, defaults = model.graphs[0], _defaults(model)
    sizes: Sizes = {}
    for t, stated in zip(main.inputs, main.input_types, strict=False):
        type_ = given.get(t) or defaults.get(t)
        if type_ is not None and stated is not None:
            for size, name in zip(type_.shape or (), stated.shape or (), strict=False):
                if isinstance(name, str) and name and isinstance(size, int):
                    sizes.setdefault(name, (size, f"the input {quote(model.tensors[t].name)}"))
    return sizes


def _defaults(model: Model) -> dict[TensorId, ValueType]:
    """The types of the stored values of the inputs of the main graph."""
    main = model.graphs[0]
    stored = {t: ValueType("tensor", constant.element, constant.dims) for t, constant in initializers(main)}
    return {t: stored[t] for t in main.inputs if t in stored}


def _fits(value: Value, stated: ValueType) -> bool:
    """True where a value, and all that it holds, has the declared kind and element types; what is left open fits."""
    if not _type_fits(type_of(value), stated):
        return False
    inner = stated.inner or ValueType("unset")
    match value:
        case np.ndarray():
            return True
        case Sequence():
            return all(_fits(item, inner) for item in value.items)
        case Optional():
            return value.item is None or _fits(value.item, inner)
        case Map():
            return all(_fits(item, inner) for _, item in value.items)


def _type_fits(type_: ValueType, stated: ValueType) -> bool:
    """True where a type has the declared kind and element types: an empty sequence has an element type too."""
    if stated.kind in ("unset", ""):
        return True
    kind = "tensor" if stated.kind == "sparse_tensor" else stated.kind
    if type_.kind != kind or stated.element not in ("", type_.element):
        return False
    return stated.inner is None or (type_.inner is not None and _type_fits(type_.inner, stated.inner))


def type_text(stated: ValueType | None) -> str:
    """A type as messages show it: float[N, 3, ?], sequence(float)."""
    if stated is None or stated.kind in ("unset", ""):
        return "any type"
    if stated.kind in ("tensor", "sparse_tensor"):
        front = "sparse " if stated.kind == "sparse_tensor" else ""
        element = stated.element or "any element type"
        return f"{front}{element}{'' if stated.shape is None else f'[{_dims(stated.shape)}]'}"
    if stated.kind == "map":
        return f"map({stated.element}, {type_text(stated.inner)})"
    return f"{stated.kind}({type_text(stated.inner)})"


def _dims(shape: Iterable[int | str | None]) -> str:
    return ", ".join("?" if size is None or size == "" else str(size) for size in shape)


# ---- Drawing ----------------------------------------------------------------------------------


def random_inputs(
    model: Model, seed: int, given: Iterable[str] = (), sizes: Mapping[str, int] = MappingProxyType({})
) -> tuple[dict[str, Value], tuple[str, ...]]:
    """A value for each input that needs one and is not given, and the dimensions left open that were set to 1.

    Floats are normally distributed, integers small, booleans and texts any. The same seed gives the same values.
    sizes: of dimensions that the model leaves open, by name.
    Raises ModelError for an input whose type is not declared, or whose shape has no rank or more than 16 GiB, and for a
    size that no input that is drawn has.
    """
    drawn: dict[str, Value] = {}
    open_sizes: list[str] = []
    skip = set(given)
    _check_sizes(model, skip, sizes)
    for number, (name, (_, stated, needed)) in enumerate(declared_inputs(model).items()):
        if name in skip or not needed:
            continue
        generator = np.random.Generator(np.random.PCG64([seed, number]))
        drawn[name] = _drawn(name, _sized(stated, sizes), generator, open_sizes)
    return drawn, tuple(dict.fromkeys(open_sizes))


def _check_sizes(model: Model, given: set[str], sizes: Mapping[str, int]) -> None:
    known: dict[str, None] = {}
    for name, (_, stated, needed) in declared_inputs(model).items():
        while stated is not None and needed and name not in given:
            known |= dict.fromkeys(size for size in stated.shape or () if isinstance(size, str) and size)
            stated = stated.inner
    for wanted in sizes:
        if wanted not in known:
            has = f"those have {', '.join(map(quote, known))}" if known else "those have none that is open"
            raise ModelError(f"no input that is drawn has a size {quote(wanted)}: {has}")


def _sized(stated: ValueType | None, sizes: Mapping[str, int]) -> ValueType | None:
    """The type with these sizes in place of names."""
    if stated is None:
        return None
    shape = stated.shape
    if shape is not None:
        shape = tuple(sizes.get(size, size) if isinstance(size, str) else size for size in shape)
    return replace(stated, shape=shape, inner=_sized(stated.inner, sizes))


def _drawn(name: str, stated: ValueType | None, generator: np.random.Generator, open_sizes: list[str]) -> Value:
    if stated is not None and stated.kind == "sequence" and stated.inner is not None:
        inner = ValueType(stated.inner.kind, stated.inner.element, inner=stated.inner.inner)
        return Sequence(inner, (_drawn(name, stated.inner, generator, open_sizes),))
    if stated is not None and stated.kind == "optional" and stated.inner is not None:
        return Optional(stated.inner, _drawn(name, stated.inner, generator, open_sizes))
    if stated is not None and stated.kind == "map" and stated.inner is not None and stated.element:
        inner = ValueType(stated.inner.kind, stated.inner.element, inner=stated.inner.inner)
        key = _TEXTS[int(generator.integers(len(_TEXTS)))] if stated.element == "string" else 0
        return Map(stated.element, inner, ((key, _drawn(name, stated.inner, generator, open_sizes)),))
    if stated is None or stated.kind != "tensor" or not stated.element or stated.shape is None:
        raise ModelError(f"the input {quote(name)} is declared as {type_text(stated)}, which says too little: give it")
    shape = tuple(size if isinstance(size, int) and size >= 0 else 1 for size in stated.shape)
    open_sizes += [
        f"axis {axis} of {quote(name)}" if not isinstance(size, str) or not size else quote(size)
        for axis, size in enumerate(stated.shape)
        if not isinstance(size, int) or size < 0
    ]
    if stated.element != "string" and byte_size(stated.element, shape) > _LARGEST:
        raise ModelError(f"the input {quote(name)} of {type_text(stated)} would have more than 16 GiB: give it")
    return random_tensor(stated.element, shape, generator)


def random_tensor(element: str, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """A tensor of random elements."""
    dtype = dtype_of(element)
    if element == "string":
        texts = np.empty(shape, object)
        texts.reshape(-1)[:] = [_TEXTS[i] for i in generator.integers(len(_TEXTS), size=int(np.prod(shape)))]
        return texts
    if element == "bool":
        return generator.integers(2, size=shape).astype(np.bool_)
    if "int" in element:
        bits = min(BITS[element], 5)
        low, high = (0, 1 << bits) if element.startswith("uint") else (-(1 << bits - 1), 1 << bits - 1)
        return generator.integers(low, high, size=shape).astype(dtype)
    values = np.asarray(generator.standard_normal(shape))
    if element.startswith("complex"):
        return np.asarray(values + 1j * generator.standard_normal(shape)).astype(dtype)
    return np.asarray(np.abs(values) if element == "float8e8m0" else values).astype(dtype)
