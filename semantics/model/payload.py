"""How many entries a protobuf field needs for the elements of a stored tensor (onnx.proto, TensorProto)."""

from __future__ import annotations

BITS = {
    **dict.fromkeys(("uint2", "int2"), 2),
    **dict.fromkeys(("uint4", "int4", "float4e2m1"), 4),
    **dict.fromkeys(("float6e2m3", "float6e3m2"), 6),
    **dict.fromkeys(("uint8", "int8", "bool", "float8e4m3fn", "float8e4m3fnuz"), 8),
    **dict.fromkeys(("float8e5m2", "float8e5m2fnuz", "float8e8m0"), 8),
    **dict.fromkeys(("uint16", "int16", "float16", "bfloat16"), 16),
    **dict.fromkeys(("float", "int32", "uint32"), 32),
    **dict.fromkeys(("double", "int64", "uint64", "complex64"), 64),
    "complex128": 128,
}
"""The size of an element in raw_data."""
FIELDS = {
    **dict.fromkeys(("float", "complex64"), "float_data"),
    **dict.fromkeys(("double", "complex128"), "double_data"),
    "int64": "int64_data",
    **dict.fromkeys(("uint32", "uint64"), "uint64_data"),
    "string": "string_data",
}
"""The typed field for an element type; all others use int32_data."""
BYTES = frozenset({"raw_data", "external"})


def field(element: str) -> str:
    """The typed field that holds elements of this type; "" for a type that ONNX does not know."""
    return FIELDS.get(element) or ("int32_data" if element in BITS else "")


def elements(dims: tuple[int, ...]) -> int:
    """The number of elements; negative dimensions count as empty."""
    count = 1
    for size in dims:
        count *= max(size, 0)
    return count


def required(element: str, form: str, count: int) -> int:
    """The entries (bytes for raw and external data) that `count` elements need in the field `form`.

    Elements below a byte are packed: raw data without gaps, int32_data one byte an entry, that is 2 elements of 4 bits
    or 4 of 2 bits, and 1 of 6 bits. onnx.checker 1.23 asks less (8 and 16 an entry); the text of onnx.proto decides.
    Complex numbers take two entries of a typed field. Strings have no size in bytes: 0 for raw data.
    """
    bits = BITS.get(element, 0)
    if form in BYTES:
        return (count * bits + 7) // 8
    if form == "int32_data" and bits in (2, 4):
        return (count * bits + 7) // 8
    return 2 * count if element.startswith("complex") else count
