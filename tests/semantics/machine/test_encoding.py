"""The bytes that the machine stores are those of the definitions of part 3b, and of onnx's raw data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from sampling import one_of_each
from sonnx.proofs.encoding.folding import Meaning, evaluated
from sonnx.semantics.machine.memory import Memory, parts_of, read_value, type_of, write_parts
from sonnx.semantics.model.elements import BITS, DTYPES, ELEMENT_TYPES
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Array, Map, Optional, Sequence, Value, identical
from sonnx.spec.library import specification
from tables import table

TEXT = specification()
FIXED = [name for name in BITS if name in DTYPES]
SMALL = [name for name in FIXED if BITS[name] <= 16 and name != "bool"]


def codes(element: str, array: Array) -> list[int]:
    """The binary digits of each element, as a number."""
    flat = np.ascontiguousarray(array).reshape(-1)
    mask = (1 << BITS[element]) - 1
    return [int.from_bytes(flat[k : k + 1].tobytes(), "little") & mask for k in range(flat.size)]


def tensor(element: str, numbers: list[int] | range) -> Array:
    """The elements with these binary digits."""
    dtype = DTYPES[element]
    return np.frombuffer(b"".join(k.to_bytes(dtype.itemsize, "little") for k in numbers), dtype)


def by_the_text(name: str, *arguments: Meaning) -> bytes:
    found = evaluated(TEXT, name, *arguments)
    assert isinstance(found, tuple)
    return bytes(it for it in found if isinstance(it, int))


def stored(value: Value) -> bytes:
    return b"".join(map(bytes, parts_of(value)))


def loaded(value: Value) -> Value:
    data = stored(value)
    found = read_value(write_parts(Memory(len(data)), 0, parts_of(value)), 0, len(data), type_of(value))
    assert isinstance(found, (np.ndarray, Sequence, Optional, Map))
    return found


# ---- Fixed widths -----------------------------------------------------------------------------


@pytest.mark.parametrize("element", SMALL)
def test_every_element_of_up_to_16_bits_is_stored_as_the_text_says(element: str) -> None:
    """One text evaluation for all elements at once; one tensor of them all on the other side, where they fill bytes."""
    bits = BITS[element]
    numbers = np.arange(1 << bits)
    together = 1 if bits % 8 == 0 else 4
    places = np.array(list(product(numbers, repeat=together)) if bits < 6 else [[k] * together for k in numbers])
    found = evaluated(TEXT, "encode", tuple(places[:, k] for k in range(together)), bits)
    assert isinstance(found, tuple)
    expected = np.stack([np.asarray(it) for it in found], 1).astype(np.uint8).tobytes()
    values = tensor(element, [int(k) for k in places.reshape(-1)])
    assert stored(values) == expected
    assert identical(loaded(values), values)


@pytest.mark.parametrize("element", one_of_each(FIXED, BITS.__getitem__))
def test_tensors_of_odd_counts_are_stored_as_the_text_says(element: str) -> None:
    rng = np.random.default_rng(7)
    for count in (0, 1, 2, 3, 4, 5, 7):
        numbers = [int.from_bytes(rng.bytes(16), "little") & ((1 << BITS[element]) - 1) for _ in range(count)]
        numbers = [k & 1 for k in numbers] if element == "bool" else numbers
        value = tensor(element, numbers)
        assert stored(value) == by_the_text("encode", tuple(numbers), BITS[element])
        assert codes(element, loaded(value)) == numbers  # type: ignore[arg-type]
        assert evaluated(TEXT, "decode", tuple(stored(value)), BITS[element], count) == tuple(numbers)


OF_ONNX = [name for name in FIXED if hasattr(onnx.TensorProto, name.upper())]


@pytest.mark.parametrize("element", OF_ONNX)
def test_the_text_gives_the_raw_data_of_onnx(element: str) -> None:
    rng = np.random.default_rng(3)
    numbers = [int.from_bytes(rng.bytes(16), "little") & ((1 << BITS[element]) - 1) for _ in range(5)]
    numbers = [k & 1 for k in numbers] if element == "bool" else numbers
    data = by_the_text("encode", tuple(numbers), BITS[element])
    code = ELEMENT_TYPES[element].code
    proto = helper.make_tensor("x", code, [5], data, raw=True)
    assert codes(element, numpy_helper.to_array(proto)) == numbers


def test_integers_have_codes_in_twos_complement() -> None:
    for k in range(-128, 128):
        code = evaluated(TEXT, "code_of", k, 8)
        assert code == np.int8(k).view(np.uint8) and evaluated(TEXT, "signed", code, 8) == k
    for k in (-8, -1, 0, 7):
        assert evaluated(TEXT, "code_of", k, 4) == int(np.array(k, ml_dtypes.int4).view(np.uint8)) & 15


# ---- Strings and structures -------------------------------------------------------------------


def rows(*texts: bytes) -> tuple[Meaning, ...]:
    return tuple(tuple(text) for text in texts)


def strings(*texts: bytes) -> Array:
    made = np.empty(len(texts), object)
    made[:] = list(texts)
    return made


TEXTS = [(), (b"",), (b"a", b"", b"bc"), ("äß".encode(), b"\xff" * 9)]


@table("texts", TEXTS)
def test_strings_are_stored_as_the_text_says(texts: tuple[bytes, ...]) -> None:
    data = stored(strings(*texts))
    assert data == by_the_text("encode_texts", rows(*texts))
    for k, text in enumerate(texts):
        assert evaluated(TEXT, "text_at", tuple(data), len(texts), k) == tuple(text)
    assert identical(loaded(strings(*texts)), strings(*texts))


FLOATS = ValueType("tensor", "float")


def item(value: Array) -> bytes:
    """A tensor in a structure."""
    return by_the_text("item_of_tensor", tuple(value.shape), tuple(stored(value)))


def structures() -> Iterator[tuple[Value, bytes]]:
    """Values, and their bytes by the text."""
    one, two = np.array([1.5, 2.5, 3.5], np.float32), np.array([[7.0]], np.float32)
    some = by_the_text("encode_sequence", rows(item(one), item(two)))
    inner = Sequence(FLOATS, (one, two))
    yield Sequence(FLOATS, ()), by_the_text("encode_sequence", ())
    yield inner, some
    yield Sequence(ValueType("sequence", inner=FLOATS), (inner,)), by_the_text("encode_sequence", rows(some))
    yield Optional(FLOATS, None), by_the_text("encode_optional", ())
    yield Optional(FLOATS, two), by_the_text("encode_optional", rows(item(two)))
    keys = tuple(np.array([-1, 5], np.int64).tobytes())
    yield Map("int64", FLOATS, ((-1, one), (5, two))), by_the_text("encode_map", keys, 2, rows(item(one), item(two)))
    named = tuple(by_the_text("encode_texts", rows(b"k")))
    yield Map("string", FLOATS, ((b"k", two),)), by_the_text("encode_map", named, 1, rows(item(two)))
    yield Map("int64", FLOATS, ()), by_the_text("encode_map", (), 0, ())


def test_sequences_optionals_and_maps_are_stored_as_the_text_says() -> None:
    for value, data in structures():
        assert stored(value) == data, value
        assert identical(loaded(value), value)
