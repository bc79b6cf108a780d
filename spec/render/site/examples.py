"""The examples of operators: small applications, written as data in `spec/examples`, executed by a layer above.

A file holds tables by operator. `says` is what the example shows; `versions` the first and the last version for which
it is meant, all that have what it names without it; `outputs` the number of outputs asked for, the required ones
without it; `model` a graph in ONNX's textual syntax that holds the operator. Every other key is an input or an
attribute of the operator, or an input of the graph. A tensor is a table with its element type as key,
`{float = [[1, 2]]}`, its data nested or, beside `shape`, in row-major order; "count" instead of data stands for
1, 2, 3 ... A list of tensors is several inputs or a sequence, `{optional = {float = [1]}}` an optional.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.resources import files
from typing import Final, cast

from ...elaborate.schema import Signature

RESERVED: Final = frozenset({"says", "versions", "outputs", "model"})
"""The keys of a table that are no arguments."""
GROUP: Final = "sonnx.examples"
"""The entry point at which a layer above offers the function that executes an example."""


@dataclass(frozen=True, slots=True)
class Example:
    """An application of an operator, or a graph that holds it ("" for none). arguments: by name, as TOML gives them."""

    operator: str
    says: str
    arguments: Mapping[str, object]
    versions: tuple[int, int] | None = None
    outputs: int | None = None
    model: str = ""

    def fits(self, signature: Signature) -> bool:
        """True where the operator has at this version what the example names, and the example what it requires."""
        if self.versions is not None and not self.versions[0] <= signature.version <= self.versions[1]:
            return False
        if self.model:
            return True
        variadic = any(port.mark == "*" for port in signature.outputs)
        if self.outputs is not None and self.outputs > len(signature.outputs) and not variadic:
            return False
        data = {port.name for port in signature.inputs} | {
            name for name, attribute in signature.attributes.items() if attribute.sort.name == "Array"
        }
        needed = {port.name for port in signature.inputs if not port.mark} | {
            name for name, attribute in signature.attributes.items() if attribute.required
        }
        known = data | signature.attributes.keys()
        kinds = all((name in data) == _is_data(given) for name, given in self.arguments.items())
        return kinds and needed <= self.arguments.keys() <= known


def _is_data(given: object) -> bool:
    """True for an argument that is a tensor or a list of tensors."""
    return isinstance(given[0] if isinstance(given, list) and given else given, Mapping)


@dataclass(frozen=True, slots=True)
class Value:
    """A named value as text: its type and shape ("" for an attribute), its elements."""

    name: str
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class Executed:
    """The outcome of an example: the values given and the outputs, or the sentence why there are none."""

    given: tuple[Value, ...]
    outputs: tuple[Value, ...]
    stuck: str = ""


Execute = Callable[[Example, Signature], Executed]


def executor() -> Execute | None:
    """The function that executes examples, None when no layer that can is installed."""
    point = next(iter(entry_points(group=GROUP)), None)
    return None if point is None else cast("Execute", point.load())


def read_examples() -> tuple[Example, ...]:
    """The examples of the package, by file and in their order there."""
    folder = files("sonnx.spec").joinpath("examples")
    texts = {item.name: item.read_text(encoding="utf-8") for item in folder.iterdir() if item.name.endswith(".toml")}
    return tuple(example for name in sorted(texts) for example in parse_examples(texts[name]))


def parse_examples(text: str) -> tuple[Example, ...]:
    """The examples of one file. Raises tomllib.TOMLDecodeError, KeyError for one that says nothing."""
    tables = cast("dict[str, list[dict[str, object]]]", tomllib.loads(text))
    return tuple(_example(operator, table) for operator, rows in tables.items() for table in rows)


def _example(operator: str, table: Mapping[str, object]) -> Example:
    versions, outputs = table.get("versions"), table.get("outputs")
    arguments = {name: value for name, value in table.items() if name not in RESERVED}
    return Example(
        operator,
        str(table["says"]),
        arguments,
        cast("tuple[int, int]", tuple(versions)) if isinstance(versions, list) else None,
        outputs if isinstance(outputs, int) else None,
        str(table.get("model", "")).strip(),
    )
