"""Element types are dtypes, and the bytes of a tensor are those of ONNX's raw_data."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from sonnx.checker.rechecker import stored
from sonnx.checker.rechecker.operators import elements as rechecked
from sonnx.checker.rechecker.operators import primitives as rechecker
from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.semantics.model.elements import (
    BITS,
    DTYPES,
    ELEMENT_TYPES,
    FLOATS,
    INTEGERS,
    byte_size,
    decode,
    dtype_of,
    element_of,
    encode,
    limits,
)  # fmt: skip
from sonnx.semantics.runtimes.engines import onnxruntime_worker
from sonnx.spec.elaborate import sorts
from tables import table

CODES = {name.lower(): code for name, code in TensorProto.DataType.items() if code}
FIXED = [element for element in DTYPES if element != "string"]
SMALL = [element for element in FIXED if BITS[element] <= 16]


def all_codes(element: str) -> NDArray[np.generic]:
    """Every bit pattern that an element of at most 16 bits can have."""
    dtype = dtype_of(element)
    patterns = np.arange(2 if element == "bool" else 2 ** BITS[element], dtype=f"u{dtype.itemsize}")
    return patterns.view(dtype)


def by_onnx(array: NDArray[np.generic], element: str) -> bytes:
    proto = numpy_helper.from_array(array)
    assert proto.data_type == CODES[element]
    return proto.raw_data


def read_by_onnx(data: bytes, element: str, shape: tuple[int, ...]) -> NDArray[np.generic]:
    return numpy_helper.to_array(TensorProto(data_type=CODES[element], dims=shape, raw_data=data))


def bits(array: NDArray[np.generic]) -> bytes:
    return array.tobytes()


def test_every_element_type_of_onnx_has_a_dtype_of_its_own() -> None:
    assert set(DTYPES) == set(CODES)
    assert len(set(DTYPES.values())) == len(DTYPES)
    for element, dtype in DTYPES.items():
        assert element_of(dtype) == element
        assert dtype_of(element) == dtype


def test_the_table_has_the_numbers_of_onnx_and_the_tables_that_may_not_import_it_agree_with_it() -> None:
    assert {name: row.code for name, row in ELEMENT_TYPES.items()} == CODES
    assert set(ELEMENT_TYPES) == sorts.ELEMENT_TYPES
    assert dict(enumerate(rechecker.CODES)) == {0: "", **{row.code: name for name, row in ELEMENT_TYPES.items()}}
    assert rechecker.BITS == BITS
    assert stored.BITS == BITS
    assert rechecked.FLOATS == FLOATS
    assert {name: limits(name) for name in INTEGERS} == rechecked.INTEGERS
    assert onnxruntime_worker.CODES.items() <= CODES.items()
    assert set(CODES) - set(onnxruntime_worker.CODES) == {"float6e2m3", "float6e3m2"}, "onnxruntime has them now"
    assert onnxruntime_worker.BITS.items() <= BITS.items()


@table("element", sorted(FLOATS | INTEGERS))
def test_the_finite_range_is_that_of_the_codes(element: str) -> None:
    low, high = limits(element) or (0, 0)
    if element in SMALL:
        numbers = all_codes(element).astype(np.float64)
        assert (low, high) == (numbers[np.isfinite(numbers)].min(), numbers[np.isfinite(numbers)].max())
    elif element in INTEGERS:
        assert (low, high) == (np.iinfo(dtype_of(element)).min, np.iinfo(dtype_of(element)).max)
    else:
        assert (low, high) == (np.finfo(dtype_of(element)).min, np.finfo(dtype_of(element)).max)
    assert limits("bool") is limits("string") is limits("complex64") is None


@table("element", SMALL)
def test_every_code_of_a_small_type_has_the_bytes_that_onnx_gives_it(element: str) -> None:
    array = all_codes(element)
    assert bytes(encode(array)) == by_onnx(array, element)


@table("element", SMALL)
def test_every_code_of_a_small_type_is_read_as_onnx_reads_it(element: str) -> None:
    array = all_codes(element)
    data = by_onnx(array, element)
    found = decode(data, element, array.shape)
    assert found.dtype == array.dtype
    assert bits(found) == bits(array) == bits(read_by_onnx(data, element, array.shape))


@table("element", [element for element in FIXED if BITS[element] < 8])
@table("count", range(10))
def test_elements_below_a_byte_are_packed_as_onnx_packs_them_for_every_rest(element: str, count: int) -> None:
    array = all_codes(element)[::-1][np.arange(count) % 2 ** BITS[element]]
    data = encode(array)
    assert bytes(data) == by_onnx(array, element)
    assert len(data) == byte_size(element, (count,)) == math.ceil(count * BITS[element] / 8)
    assert bits(decode(data, element, (count,))) == bits(array)


def test_packing_goes_on_after_a_block() -> None:
    codes = np.random.default_rng(1).integers(0, 64, (1 << 20) + 1003, np.uint8)
    array = codes.view(dtype_of("float6e3m2"))
    assert bytes(encode(array)) == by_onnx(array, "float6e3m2")
    assert bits(decode(encode(array), "float6e3m2", array.shape)) == bits(array)


def test_upper_bits_of_an_element_below_a_byte_do_not_count() -> None:
    array = np.array([0xF1, 0x2F], np.uint8).view(dtype_of("int4"))
    assert encode(array) == b"\xf1"


@pytest.mark.parametrize("element", FIXED)
@given(shape=st.lists(st.integers(0, 5), max_size=4).map(tuple), seed=st.integers(0, 2**32))
def test_decoding_undoes_encoding_for_every_type_and_shape(element: str, shape: tuple[int, ...], seed: int) -> None:
    dtype = dtype_of(element)
    limit = 2 if element == "bool" else 2 ** min(BITS[element], 8)
    size = math.prod(shape) * dtype.itemsize
    codes = np.random.default_rng(seed).integers(0, limit, size, np.uint8)
    array = codes.view(dtype).reshape(shape)
    encoded = encode(array)
    assert len(encoded) == byte_size(element, shape)
    found = decode(encoded, element, shape)
    assert (found.shape, found.dtype, bits(found)) == (shape, dtype, bits(array))


@table("element", FIXED)
@table("shape", [(), (0,), (3, 0, 2), (1,)])
def test_scalars_and_empty_tensors_keep_their_shape(element: str, shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, dtype_of(element))
    assert decode(encode(array), element, shape).shape == shape


@table(
    "special", [np.nan, -np.nan, -0.0, np.inf, -np.inf, 5e-324], ids=["nan", "-nan", "-0", "inf", "-inf", "subnormal"]
)
def test_special_values_keep_every_bit(special: float) -> None:
    array = np.full(100, special)
    assert bits(decode(encode(array), "double", (100,))) == bits(array)


@table("element", FIXED)
def test_what_is_decoded_is_read_only(element: str) -> None:
    assert not decode(encode(np.zeros(300, dtype_of(element))), element, (300,)).flags.writeable
    assert not decode(encode(np.zeros(0, dtype_of(element))), element, (0,)).flags.writeable


@table("element", [element for element in FIXED if BITS[element] >= 8])
def test_large_tensors_are_not_copied(element: str) -> None:
    array = np.zeros((40, 50), dtype_of(element))
    encoded = encode(array)
    assert np.shares_memory(np.frombuffer(encoded, np.uint8), array.view(np.uint8))
    assert np.shares_memory(decode(encoded, element, (40, 50)).view(np.uint8), array.view(np.uint8))


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[:, ::2],
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: np.broadcast_to(a[:1], a.shape),
        lambda a: np.asfortranarray(a),
    ],
    ids=["strided", "transposed", "reversed", "broadcast", "column-major"],
)
def test_bytes_are_row_major_whatever_the_strides(view: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> None:
    array = view(np.arange(1200, dtype=np.float32).reshape(30, 40))
    assert bytes(encode(array)) == array.tobytes()


def test_a_small_part_does_not_keep_a_large_array_alive() -> None:
    array = np.zeros(1_000_000, np.float32)
    assert not np.shares_memory(np.frombuffer(encode(array[:1000]), np.uint8), array.view(np.uint8))


def test_a_small_part_of_bytes_is_copied_too() -> None:
    whole = encode(np.arange(1_000_000, dtype=np.float32))
    for data in (whole, bytes(whole)):
        part = decode(data, "float", (1_000_000,))[5000:6000]
        assert not np.shares_memory(np.frombuffer(encode(part), np.uint8), np.frombuffer(data, np.uint8))


def test_bytes_need_not_be_aligned() -> None:
    array = np.arange(300, dtype=np.float64)
    data = memoryview(b"x" + array.tobytes())[1:]
    assert (decode(data, "double", (300,)) == array).all()


@pytest.mark.parametrize("length", [0, 11, 13])
def test_a_wrong_number_of_bytes_is_refused(length: int) -> None:
    with pytest.raises(InternalError, match=r"bytes are no tensor of float and shape \[3\]"):
        decode(bytes(length), "float", (3,))


@pytest.mark.parametrize("dtype", ["U3", "S3", "M8[s]", ">f4", "V4"])
def test_a_dtype_without_an_element_type_is_refused(dtype: str) -> None:
    with pytest.raises(InternalError, match="dtype"):
        element_of(np.dtype(dtype))
    with pytest.raises(InternalError, match="dtype"):
        encode(np.zeros(2, dtype))


def test_strings_and_unknown_types_are_refused() -> None:
    with pytest.raises(InternalError, match="raw bytes"):
        encode(np.array([b"a"], object))
    with pytest.raises(InternalError, match="no size in bytes"):
        byte_size("string", (1,))
    with pytest.raises(Unsupported, match="float3"):
        dtype_of("float3")
    with pytest.raises(Unsupported, match="unset"):
        dtype_of("")
