"""The ledger: what runtimes are known to do otherwise than the specification says, as cases that can be executed.

`deviations/*.toml` holds the cases, in files named after those of `spec/5-operators`. A case is a minimal model with
inputs and the outcome that the specification gives; a deviation says what a runtime does instead, in which versions.
`rewrites.toml` holds models that optimizers change into others: its cases are named after the rewrites of part 7 that
are never right, and tools that rewrite models stand beside the runtimes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TypeGuard, cast

import numpy as np
from sonnx.semantics.errors import InternalError
from sonnx.semantics.machine.files.json_files import Json, value_of
from sonnx.semantics.machine.inputs import declared_inputs
from sonnx.semantics.model.elements import dtype_of
from sonnx.semantics.model.graph import Model, ValueType
from sonnx.semantics.model.loader.text import from_text
from sonnx.semantics.model.values import Array, Value

FOLDER: Final = Path(__file__).parent
RUNTIMES: Final = ("onnx.reference", "onnxruntime")
PLAIN: Final = "onnxruntime-disabled"
"""onnxruntime without optimizers, as a runtime of `Case.deviation`."""
TOOLS: Final = ("onnxoptimizer", "onnxsim", "onnxslim", "onnxscript")
"""Tools that rewrite models: the outcome is that of the model which they make, in a runtime that leaves it as it is."""
BASES: Final = ("stated", "decided")
"""The source of the outcome of the specification: ONNX states it, or is silent or contradicts itself."""
CRASH: Final = "crash"
"""The refusal of a runtime whose process died."""
LOCAL: Final = "local"
"""The domain of the functions of a case."""
_RESULTS: Final = ("outputs", "refused")
_IR_VERSION: Final = 10  # old enough for every runtime in use, new enough for every element type in the ledger
_OPSET: Final = 18
"""The opset beside an operator of another domain."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run: the outputs by name, or None and why there are none.

    refused: of the machine the sentence of the `require` that does not hold, of a runtime the class of the exception
    that it raises, or "crash".
    """

    outputs: Mapping[str, Array] | None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A deviation of a runtime. versions: those observed to do so, `outcome` says what they do; gone: those
    observed not to. source: who reported it, "observed" where the ledger is the first. where: the machines on which it
    shows, empty for all. passes: the optimizers of the runtime that make it; without one of them it does not show.
    """

    runtime: str
    versions: tuple[str, ...]
    gone: tuple[str, ...]
    sentence: str
    source: str
    outcome: Outcome | None
    where: str = ""
    passes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One application with the outcome that the specification gives, and the runtimes that deviate.

    name: `Operator-version/what`, the operator with its domain before it, `ai.onnx.ml::Scaler`; of a model that
    optimizers change (`rewrite`) the rewrite and the opset, `DivMulBits-18/infinite`. text: the model in
    ONNX's textual syntax, its opset the version; functions that it calls follow the graph, in the domain LOCAL,
    version 1. defined: whether the specification gives the operator a meaning; the outcome is that of the standard's
    words until it does.
    """

    name: str
    operator: str
    version: int
    defined: bool
    basis: str
    sentence: str
    cites: str
    text: str
    inputs: Mapping[str, Value]
    outcome: Outcome
    deviations: tuple[Deviation, ...]
    rewrite: bool = False

    def deviation(self, runtime: str) -> Deviation | None:
        """The deviation of a runtime; of PLAIN that of onnxruntime which no optimizer makes."""
        plain = runtime == PLAIN
        named = (it for it in self.deviations if it.runtime == ("onnxruntime" if plain else runtime))
        return next((it for it in named if not (plain and it.passes)), None)


@cache
def ledger() -> tuple[Case, ...]:
    """All cases, by file and in the order of the file. Raises InternalError when a file does not say what it must."""
    cases = [case for path in sorted(FOLDER.glob("*.toml")) for case in read(path.name, path.read_text("utf-8"))]
    names = [case.name for case in cases]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InternalError(f"the ledger has two cases of the name {twice[0]}")
    return tuple(cases)


def model(case: Case) -> Model:
    """The model of a case."""
    return from_text(case.text.encode())


def read(file: str, text: str) -> tuple[Case, ...]:
    """The cases in the text of a file. Raises InternalError."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InternalError(f"{file}: {error}") from None
    whole = _Table(file, tables)
    whole.closed("case", "rewrite")
    return tuple(
        _case(_Table(f"{file}: {key} {position}", it), key == "rewrite")
        for key in ("case", "rewrite")
        for position, it in whole.tables(key)
    )


def _case(table: _Table, rewrite: bool) -> Case:
    name = table.text("name")
    table = _Table(name, table.content)
    operator, _, rest = name.partition("-")
    version = rest.partition("/")[0]
    if not (operator and version.isdecimal() and rest.partition("/")[2]):
        raise InternalError(f"{name} is no name of a case: Operator-version/what")
    functions = table.text("functions") if "functions" in table.content else ""
    domain = operator.rpartition("::")[0]
    own = f'"" : {_OPSET}, "{domain}" : {version}' if domain else f'"" : {version}'
    imports = own + (f', "{LOCAL}" : 1' if functions else "")
    text = f"<ir_version: {_IR_VERSION}, opset_import: [{imports}]> {table.text('graph')} {functions}"
    graph = from_text(text.encode())
    given = {name: stated or ValueType("unset") for name, (_, stated, _) in declared_inputs(graph).items()}
    main = graph.graphs[0]
    results = {graph.tensors[t].name: graph.tensors[t].declared or ValueType("unset") for t in main.outputs}
    case = Case(
        name,
        operator,
        int(version),
        table.flag("defined", True),
        table.choice("basis", BASES),
        table.text("sentence"),
        table.text("cites"),
        text,
        table.values("inputs", given) if given else {},
        table.outcome(results),
        tuple(
            _deviation(_Table(f"{name}, deviation {at}", it), results, rewrite) for at, it in table.tables("deviations")
        ),
        rewrite,
    )
    table.closed(
        "name", "defined", "basis", "sentence", "cites", "graph", "functions", "inputs", *_RESULTS, "deviations"
    )
    if len({it.runtime for it in case.deviations}) < len(case.deviations):
        raise InternalError(f"{name} states two deviations of one runtime")
    return case


def _deviation(table: _Table, results: Mapping[str, ValueType], rewrite: bool) -> Deviation:
    versions = table.texts("versions")
    gone = table.texts("gone")
    if (not versions and not gone) or set(versions) & set(gone):
        raise InternalError(f"{table.place}: state the versions that deviate, or in which the deviation is gone")
    table.closed("runtime", "versions", "gone", "sentence", "source", "where", "passes", *_RESULTS)
    passes = table.texts("passes")
    runtime = table.choice("runtime", (*RUNTIMES, *TOOLS) if rewrite else RUNTIMES)
    if passes and runtime != "onnxruntime":
        raise InternalError(f"{table.place}: only onnxruntime has 'passes'")
    return Deviation(
        runtime,
        versions,
        gone,
        table.text("sentence"),
        table.text("source"),
        table.outcome(results) if versions else None,
        table.text("where") if "where" in table.content else "",
        passes,
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a file, and where it stands."""

    place: str
    content: Mapping[str, object]

    def closed(self, *keys: str) -> None:
        extra = sorted(set(self.content) - set(keys))
        if extra:
            raise InternalError(f"{self.place}: the ledger has no key {extra[0]!r}")

    def text(self, key: str) -> str:
        value = self.content.get(key)
        if not isinstance(value, str) or not value.strip():
            raise InternalError(f"{self.place}: state {key!r}, a text")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.content.get(key, [])
        if not _is_list(value) or not all(isinstance(it, str) for it in value):
            raise InternalError(f"{self.place}: {key!r} is a list of texts")
        return tuple(str(it) for it in value)

    def choice(self, key: str, allowed: tuple[str, ...]) -> str:
        value = self.text(key)
        if value not in allowed:
            raise InternalError(f"{self.place}: {key!r} is one of {', '.join(allowed)}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.content.get(key, default)
        if not isinstance(value, bool):
            raise InternalError(f"{self.place}: {key!r} is true or false")
        return value

    def tables(self, key: str) -> list[tuple[int, Mapping[str, object]]]:
        value = self.content.get(key, [])
        if not _is_list(value):
            raise InternalError(f"{self.place}: {key!r} is a list of tables")
        rows: list[tuple[int, Mapping[str, object]]] = []
        for position, it in enumerate(value, 1):
            if not _is_table(it):
                raise InternalError(f"{self.place}: {key!r} is a list of tables")
            rows.append((position, it))
        return rows

    def arrays(self, key: str, types: Mapping[str, ValueType]) -> Mapping[str, Array]:
        value = self.content.get(key)
        if not _is_table(value) or set(value) != set(types):
            raise InternalError(f"{self.place}: {key!r} gives a value for each of {', '.join(types)}")
        return {name: _array(f"{self.place}, {name}", value[name], it) for name, it in types.items()}

    def values(self, key: str, types: Mapping[str, ValueType]) -> Mapping[str, Value]:
        """Tensors, and maps as tables."""
        maps = {name: it for name, it in types.items() if it.kind == "map"}
        content = self.content.get(key)
        if not maps or not _is_table(content):
            return self.arrays(key, types)
        rest = {name: it for name, it in types.items() if name not in maps}
        others = _Table(self.place, {key: {name: content[name] for name in rest if name in content}})
        made = {name: value_of(cast("Json", content.get(name)), it) for name, it in maps.items()}
        return {**others.arrays(key, rest), **made}

    def outcome(self, types: Mapping[str, ValueType]) -> Outcome:
        if ("refused" in self.content) == ("outputs" in self.content):
            raise InternalError(f"{self.place}: state either 'outputs' or 'refused'")
        if "refused" in self.content:
            return Outcome(None, self.text("refused"))
        return Outcome(self.arrays("outputs", types))


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _is_table(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _array(place: str, value: object, declared: ValueType) -> Array:
    """A tensor of the declared element type. Lists without elements get the declared shape where it is known."""
    dtype = dtype_of(declared.element)
    try:
        made = np.array(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InternalError(f"{place}: {error}") from None
    if declared.element == "string":
        made.reshape(-1)[:] = [str(text).encode() for text in made.reshape(-1).tolist()]
    shape = tuple(size for size in declared.shape or () if isinstance(size, int))
    if not made.size and 0 in shape and len(shape) == len(declared.shape or ()):
        made = made.reshape(shape)
    made.flags.writeable = False
    return made
