"""Sequences, optionals, maps and strings are bytes in M, and come back bit for bit."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sonnx.semantics.errors import InternalError
from sonnx.semantics.machine.memory import (
    Memory,
    Uninitialised,
    erase,
    history_bytes,
    parts_of,
    read_value,
    type_of,
    write,
    write_parts,
)
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Array, Map, Optional, Sequence, Value, identical

FLOATS = ValueType("tensor", "float")
TEXTS = ValueType("tensor", "string")


def types(depth: int) -> st.SearchStrategy[ValueType]:
    tensors = st.sampled_from(sorted(DTYPES)).map(lambda element: ValueType("tensor", element))
    if depth == 0:
        return tensors
    inner = types(depth - 1)
    return st.one_of(
        tensors,
        inner.map(lambda t: ValueType("sequence", inner=t)),
        inner.map(lambda t: ValueType("optional", inner=t)),
        st.builds(lambda key, t: ValueType("map", key, inner=t), st.sampled_from(["string", "int64", "uint64"]), inner),
    )


def tensors(element: str) -> st.SearchStrategy[Array]:
    def made(shape: tuple[int, ...], seed: int) -> Array:
        rng = np.random.default_rng(seed)
        if element == "string":
            array = np.empty(math.prod(shape), object)
            array[:] = [rng.bytes(int(rng.integers(0, 5))) for _ in range(array.size)]
            return array.reshape(shape)
        size = math.prod(shape) * DTYPES[element].itemsize
        limit = 2 if element == "bool" else 4
        return rng.integers(0, limit, size, np.uint8).view(DTYPES[element]).reshape(shape)

    return st.builds(made, st.lists(st.integers(0, 3), max_size=3).map(tuple), st.integers(0, 99))


def values(type: ValueType) -> st.SearchStrategy[Value]:
    if type.inner is None:
        return tensors(type.element)
    inner = type.inner
    if type.kind == "sequence":
        return st.lists(values(inner), max_size=3).map(lambda items: Sequence(inner, tuple(items)))
    if type.kind == "optional":
        return st.none().map(lambda _: Optional(inner, None)) | values(inner).map(lambda item: Optional(inner, item))
    keys: st.SearchStrategy[int | bytes] = (
        st.binary(max_size=9)
        if type.element == "string"
        else st.integers(0, 2**64 - 1)
        if type.element == "uint64"
        else st.integers(-(2**63), 2**63 - 1)
    )
    entries = st.dictionaries(keys, values(inner), max_size=3)
    return entries.map(lambda found: Map(type.element, inner, tuple(sorted(found.items()))))


TYPED = types(2).flatmap(values)


def placed(value: Value, offset: int = 64) -> tuple[Memory, int]:
    parts = parts_of(value)
    length = sum(map(len, parts))
    return write_parts(Memory(offset + length), offset, parts), length


def text(*items: bytes) -> Array:
    array = np.empty(len(items), object)
    array[:] = items
    return array


@given(TYPED, st.integers(0, 9))
def test_every_value_comes_back_from_wherever_it_lies(value: Value, offset: int) -> None:
    M, length = placed(value, 8 * offset)
    found = read_value(M, 8 * offset, length, type_of(value))
    assert not isinstance(found, Uninitialised)
    assert identical(found, value)
    assert type_of(found) == type_of(value)


@given(TYPED)
def test_the_bytes_depend_on_the_value_alone(value: Value) -> None:
    M, length = placed(value)
    found = read_value(M, 64, length, type_of(value))
    assert not isinstance(found, Uninitialised)
    assert b"".join(parts_of(found)) == b"".join(parts_of(value))


@given(st.lists(st.binary(max_size=20)))
def test_strings_may_hold_any_bytes_and_be_empty(texts: list[bytes]) -> None:
    array = text(*texts)
    M, length = placed(array)
    found = read_value(M, 64, length, type_of(array))
    assert isinstance(found, np.ndarray)
    assert found.tolist() == texts
    assert not found.flags.writeable


def test_the_layout_is_the_documented_one() -> None:
    def numbers(*values: int) -> bytes:
        return struct.pack(f"<{len(values)}q", *values)

    def raw(value: Value) -> bytes:
        return b"".join(parts_of(value))

    one = np.array([[1, 2, 3]], np.uint8)
    tensor = numbers(2, 1, 3) + b"\1\2\3\0\0\0\0\0"
    strings = numbers(2, 2, 3) + b"hiy"
    assert raw(one) == b"\1\2\3"
    assert raw(text(b"hi", b"", b"y")) == strings
    uint8 = ValueType("tensor", "uint8")
    assert raw(Sequence(uint8, (one, one))) == numbers(2, 32, 64, 96) + tensor + tensor
    assert raw(Sequence(uint8, ())) == numbers(0, 16)
    assert raw(Optional(uint8, None)) == numbers(0)
    assert raw(Optional(uint8, one)) == numbers(1) + tensor
    assert raw(Optional(TEXTS, text(b"hi", b"", b"y"))) == numbers(1, 1, 3) + strings + bytes(5)
    assert raw(Map("int64", uint8, ((-1, one), (7, one)))) == numbers(2, -1, 7, 48, 80, 112) + tensor + tensor
    assert raw(Map("string", uint8, ((b"ab", one),))) == numbers(1, 2) + b"ab" + bytes(6) + numbers(40, 72) + tensor


def test_keys_use_the_whole_range_of_their_type() -> None:
    one = np.zeros(1, np.float32)
    for key, low, high in (("int64", -(2**63), 2**63 - 1), ("uint64", 0, 2**64 - 1), ("int8", -128, 127)):
        value = Map(key, FLOATS, ((low, one), (high, one)))
        M, length = placed(value)
        found = read_value(M, 64, length, type_of(value))
        assert isinstance(found, Map)
        assert [k for k, _ in found.items] == [low, high]


def test_tensors_in_a_sequence_are_shared_not_copied() -> None:
    items = tuple(np.full(5000, i, np.float32) for i in range(4))
    M, length = placed(Sequence(FLOATS, items))
    found = read_value(M, 64, length, type_of(Sequence(FLOATS, items)))
    assert isinstance(found, Sequence)
    for ours, theirs in zip(items, found.items, strict=True):
        assert isinstance(theirs, np.ndarray)
        assert np.shares_memory(ours, theirs)
        assert theirs.flags.aligned


def test_a_sequence_that_grows_costs_its_new_items_only() -> None:
    M, offset, states, grown = Memory(1 << 40), 0, [], Sequence(FLOATS, ())
    for i in range(50):
        grown = Sequence(FLOATS, (*grown.items, np.full(5000, i, np.float32)))
        parts = parts_of(grown)
        M = write_parts(M, offset, parts)
        found = read_value(M, offset, sum(map(len, parts)), type_of(grown))
        assert isinstance(found, Sequence)
        grown = found
        offset += sum(map(len, parts))
        states.append(M)
    assert history_bytes(states) < 1.8 * 50 * 20_000


@given(TYPED, st.data())
def test_a_value_of_which_a_byte_is_missing_is_no_value(value: Value, data: st.DataObject) -> None:
    M, length = placed(value)
    if length:
        hole = data.draw(st.integers(64, 64 + length - 1))
        assert read_value(erase(M, hole, 1), 64, length, type_of(value)) == Uninitialised(hole)


@pytest.mark.parametrize("word", [0, 8, 16, 24])
def test_damaged_structures_are_refused(word: int) -> None:
    value = Sequence(TEXTS, (text(b"abc"), text(b"d", b"")))
    M, length = placed(value, 0)
    with pytest.raises(InternalError):
        read_value(write(M, word, b"\xff" * 8), 0, length, type_of(value))


def test_text_objects_are_no_strings() -> None:
    with pytest.raises(InternalError, match="bytes objects"):
        parts_of(np.array(["a"], object))


def test_a_scalar_of_numpy_is_no_tensor() -> None:
    with pytest.raises(InternalError, match="float32 is no value"):
        parts_of(np.float32(1))  # type: ignore[arg-type]


def test_a_map_with_keys_of_another_type_is_refused() -> None:
    one = np.zeros(1, np.float32)
    for wrong in (Map("string", FLOATS, ((1, one),)), Map("int64", FLOATS, ((b"a", one),))):
        with pytest.raises(InternalError, match="keys"):
            parts_of(wrong)


def test_values_that_differ_in_anything_are_not_identical() -> None:
    zero, negative = np.array([0.0]), np.array([-0.0])
    nan, other_nan = np.array([np.nan]), np.array([0x7FF8000000000001]).view(np.float64)
    double = ValueType("tensor", "double")
    different: list[Value | None] = [
        None,
        zero,
        negative,
        zero.reshape(1, 1),
        zero.view(np.int64),
        nan,
        other_nan,
        text(b"a"),
        text(b"b"),
        Optional(double, None),
        Optional(double, zero),
        Optional(double, negative),
        Sequence(double, ()),
        Sequence(FLOATS, ()),
        Sequence(double, (zero,)),
        Sequence(double, (negative,)),
        Sequence(double, (zero, zero)),
        Map("int64", double, ()),
        Map("string", double, ()),
        Map("int64", double, ((1, zero),)),
        Map("int64", double, ((2, zero),)),
        Map("int64", double, ((1, negative),)),
    ]
    for i, a in enumerate(different):
        for j, b in enumerate(different):
            assert identical(a, b) == (i == j), (a, b)
