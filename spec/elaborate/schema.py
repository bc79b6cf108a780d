"""ONNX's schemas of operators.

This is the one module of `spec` that imports onnx, and it does so when first asked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from ctypes import c_float
from dataclasses import dataclass
from functools import cache

from ..language.syntax import INT, TEXT, Sort
from .sorts import ELEMENT, RATIONAL, TYPE, VALUE, array_of, list_of

ATTRIBUTE_SORTS = {
    "INT": INT,
    "INTS": list_of(INT),
    "FLOAT": RATIONAL,
    "FLOATS": list_of(RATIONAL),
    "STRING": TEXT,
    "STRINGS": list_of(TEXT),
    "TENSOR": array_of(ELEMENT),
    "SPARSE_TENSOR": array_of(ELEMENT),
    "TYPE_PROTO": TYPE,
}
"""The sorts of attribute values; those of other kinds (graphs) are named after their kind. A sparse tensor is the
dense one that it stands for."""
TENSORS = list_of(array_of(ELEMENT))
VALUE_SORTS = {
    "": array_of(ELEMENT), "seq": TENSORS, "optional": list_of(VALUE), "map": TENSORS, "seq(map": list_of(TENSORS)
}  # fmt: skip
"""The sorts of values by the words that their type begins with, "" for tensors. A map is the list of two tensors with
one axis: its keys, ascending, and the values at them."""
_BEGINNING = re.compile(r"(seq\(map|\w+)\(")


@dataclass(frozen=True, slots=True)
class FormalPort:
    """A formal input or output: `mark` as in `Port`, `type` a type variable, an element type or a longer type.

    allowed: the types that it admits, written alike. least: how many a variadic one has at least. others: as in `Port`.
    """

    name: str
    mark: str
    type: str
    allowed: frozenset[str] = frozenset()
    least: int = 0
    others: tuple[str, ...] = ()

    @property
    def sort(self) -> Sort:
        """The sort of one value: a tensor, a list for a sequence or optional, Value where the schema leaves it open."""
        kinds = self._beginnings
        return VALUE_SORTS.get(next(iter(kinds)), VALUE) if len(kinds) == 1 else VALUE

    @property
    def is_map(self) -> bool:
        """Every value is a map."""
        return self._beginnings == {"map"}

    @property
    def _beginnings(self) -> frozenset[str]:
        words = map(_BEGINNING.match, self.allowed or {self.type})
        return frozenset("" if word is None or word[1] == "tensor" else word[1] for word in words)


@dataclass(frozen=True, slots=True)
class FormalAttribute:
    """optional: neither required nor given a default. default: its text, "" without one."""

    name: str
    sort: Sort
    optional: bool
    default: str

    @property
    def required(self) -> bool:
        """Every node states it."""
        return not self.optional and not self.default


@dataclass(frozen=True, slots=True)
class Signature:
    """An operator at one since_version. deprecated: ONNX gives the version up, no valid model uses it."""

    name: str
    version: int
    inputs: tuple[FormalPort, ...]
    outputs: tuple[FormalPort, ...]
    attributes: Mapping[str, FormalAttribute]
    deprecated: bool = False


@cache
def signatures() -> Mapping[str, tuple[Signature, ...]]:
    """All operators that ONNX has schemas of, each with its versions, oldest first. Those of other domains than its own
    are named with the domain, as `ai.onnx.ml::Scaler`. An input with the name of an attribute has a prime: `split'`.
    """
    import onnx.defs  # imported here: a specification without operators is elaborated without onnx

    marks = {
        onnx.defs.OpSchema.FormalParameterOption.Single: "",
        onnx.defs.OpSchema.FormalParameterOption.Optional: "?",
        onnx.defs.OpSchema.FormalParameterOption.Variadic: "*",
    }

    def ports(formals: object, taken: Collection[str] = ()) -> tuple[FormalPort, ...]:
        return tuple(
            FormalPort(
                f.name.rstrip(".") + "'" * (f.name in taken),  # Split-1 has the output `outputs...`
                marks[f.option], _element(f.type_str), frozenset(map(_element, f.types)), f.min_arity,
            )
            for f in formals  # type: ignore[attr-defined]
        )  # fmt: skip

    by_name: dict[str, list[Signature]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        attributes = {}
        for name, attribute in schema.attributes.items():
            kind = str(attribute.type).rpartition(".")[2]
            default = attribute.default_value.SerializeToString().hex() if _has_default(attribute) else ""
            optional = not attribute.required and not default
            attributes[name] = FormalAttribute(name, ATTRIBUTE_SORTS.get(kind, Sort(kind)), optional, default)
        signature = Signature(
            qualified(schema.domain, schema.name),
            schema.since_version,
            ports(schema.inputs, attributes),
            ports(schema.outputs),
            attributes,
            bool(schema.deprecated),
        )
        by_name.setdefault(signature.name, []).append(signature)
    return {name: tuple(sorted(by_name[name], key=lambda s: s.version)) for name in sorted(by_name)}


def qualified(domain: str, name: str) -> str:
    """The name of an operator with its domain before it; ONNX's own domain, "", is left out."""
    return f"{domain}::{name}" if domain else name


Plain = int | float | str


def stored_default(name: str, value: Plain | list[Plain]) -> str:
    """A default as a signature holds it: the attribute as ONNX stores it, in hexadecimal digits."""
    from onnx import helper

    return helper.make_attribute(name, value).SerializeToString().hex()


def _has_default(attribute: object) -> bool:
    return bool(attribute.default_value.name)  # type: ignore[attr-defined]


def default_text(attribute: FormalAttribute) -> str:
    """The default of an attribute as a model would write it."""
    from onnx import AttributeProto, helper

    value: object = helper.get_attribute_value(AttributeProto.FromString(bytes.fromhex(attribute.default)))
    return ", ".join(map(_written, value)) if isinstance(value, list) else _written(value)


def _written(value: object) -> str:
    """A number or a text; a float32 with as few digits as tell it from its neighbours."""
    if not isinstance(value, float):
        return f'"{value.decode()}"' if isinstance(value, bytes) else str(value)
    digits = (f"{value:.{count}g}" for count in range(1, 10))
    return next((text for text in digits if c_float(float(text)).value == value), repr(value))


def _element(type_text: str) -> str:
    """`int64` for `tensor(int64)`; anything else as it is."""
    inner = type_text.removeprefix("tensor(").removesuffix(")")
    return inner if type_text == f"tensor({inner})" else type_text
