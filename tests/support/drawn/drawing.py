"""Random applications of operators: how one is drawn, made a model of one node, and judged in engines.

A family is a module beside this one with a table of draws by operator and version, and what runtimes are known to do
otherwise: entries of the ledger, each with the applications on which it may show.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper
from sonnx.checker.runtimes.differential.outcomes import Case, Class, Result, judge_engines
from sonnx.semantics.model.elements import dtype_of, element_of
from sonnx.semantics.runtimes.engines.protocol import REFUSALS
from sonnx.semantics.runtimes.engines.registry import engine

Rng = random.Random


@dataclass(frozen=True, slots=True)
class Drawn:
    """An application. inputs: None for those that are absent."""

    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1


Draw = Callable[[Rng, str, int], Drawn]
"""Draws an application of an operator at a version."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a runtime does otherwise with operators. entry: the case of the ledger that says so, or why nothing can be
    said. when: the applications and results that it explains."""

    engine: str
    operators: str
    entry: str
    when: Callable[[Drawn, Result], bool] = lambda drawn, result: True


# ---- Draws --------------------------------------------------------------------------------------


@cache
def kinds(name: str, version: int, parameter: str) -> tuple[str, ...]:
    """The element types that the schema admits for a type parameter."""
    constraints = defs.get_schema(name, version, "").type_constraints
    (allowed,) = (it.allowed_type_strs for it in constraints if it.type_param_str == parameter)
    return tuple(it.removeprefix("tensor(").removesuffix(")") for it in sorted(allowed))


def kind(rng: Rng, name: str, version: int, parameter: str = "T", without: Sequence[str] = ()) -> str:
    """One of them, those that runtimes have oftener."""
    every = [it for it in kinds(name, version, parameter) if it not in without]
    usual = [it for it in every if it in ("float", "double", "float16", "int32", "int64", "uint8")]
    return rng.choice(usual if usual and rng.random() < 0.6 else every)


def shape(rng: Rng, least: int = 0, most: int = 4, sizes: Sequence[int] = (0, 1, 2, 3, 5)) -> list[int]:
    """A shape, its sizes mostly not 0."""
    return [rng.choice(sizes) or rng.choice(sizes) for _ in range(rng.randint(least, most))]


def numbers(rng: Rng, shape: Sequence[int], element: str, odd: float = 0.1) -> Any:
    """Elements of a type; odd: how often special ones are among them, or those of the whole range."""
    count = int(np.prod(shape, dtype=np.int64))
    dtype, special = dtype_of(element), rng.random() < odd
    if element == "string":
        made = np.empty(count, object)
        made[:] = [rng.choice([b"", b"a", b"b", b"ab", "é".encode()]) for _ in range(count)]
    elif element.startswith("complex"):
        made = np.array([complex(rng.uniform(-3, 3), rng.uniform(-3, 3)) for _ in range(count)], dtype)
    elif element == "bool":
        made = np.array([rng.random() < 0.5 for _ in range(count)], dtype)
    elif "int" in element:
        bits = int(element.removeprefix("uint").removeprefix("int"))
        least = 0 if element.startswith("u") else -(2 ** (bits - 1))
        low, high = (least, least + 2**bits - 1) if special or bits < 8 else (max(least, -5), 9)
        made = np.array([rng.randint(low, high) for _ in range(count)], np.uint64 if least == 0 else np.int64).astype(
            dtype
        )
    else:
        values = [rng.uniform(-3, 3) for _ in range(count)]
        for at in range(count if special else 0):
            if rng.random() < 0.3:
                values[at] = rng.choice([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-6, 3e4])
        with np.errstate(all="ignore"):
            made = np.array(values).astype(dtype)
    return made.reshape(shape)


def maybe(rng: Rng, **attributes: Any) -> dict[str, Any]:
    """Each attribute, or not."""
    return {name: it for name, it in attributes.items() if rng.random() < 0.6}


def integers(values: Any, element: str = "int64") -> Any:
    """A tensor of integers."""
    return np.array(values, dtype_of(element))


# ---- Models and verdicts ------------------------------------------------------------------------


def case(draw: Draw, name: str, version: int, number: int) -> tuple[Drawn, Case]:
    """An application of the operator at that version, the same one for the same number, and its model."""
    drawn = draw(random.Random(f"{name} {version} {number}"), name, version)
    names = ["" if x is None else f"x{k}" for k, x in enumerate(drawn.inputs)]
    while names and not names[-1]:
        names.pop()
    feeds = {it: x for it, x in zip(names, drawn.inputs, strict=False) if it}
    node = helper.make_node(name, names, [f"y{k}" for k in range(drawn.outputs)], "n")
    for key, it in drawn.attributes.items():
        empty = onnx.AttributeProto.INTS if it == [] else None
        node.attribute.append(helper.make_attribute(key, it, attr_type=empty))
    declared = [helper.make_tensor_value_info(key, _code(x), x.shape) for key, x in feeds.items()]
    results = [onnx.ValueInfoProto(name=it) for it in node.output]
    graph = helper.make_graph([node], "g", declared, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _opset(name, version))], ir_version=10)
    label = f"{name}-{version}"
    return drawn, Case(f"{label}/{number}", model.SerializeToString(), feeds, {"operator": label})


@cache
def _opset(name: str, version: int) -> int:
    """The last operator set that has the operator at this version: runtimes know older ones less well."""
    every = (it for it in defs.get_all_schemas_with_history() if (it.domain, it.name) == ("", name))
    return min((it.since_version - 1 for it in every if it.since_version > version), default=defs.onnx_opset_version())


def _code(array: Any) -> int:
    named = {"float": "FLOAT", "double": "DOUBLE", "string": "STRING", "bool": "BOOL"}
    element = element_of(array.dtype)
    return onnx.TensorProto.DataType.Value(named.get(element, element.upper()))


def unexplained(
    draws: Mapping[tuple[str, int], Draw], known: Sequence[Known], engines: Sequence[str], numbers: range
) -> tuple[list[str], dict[tuple[str, str, str], int]]:
    """The results that nothing explains, and how often each outcome came, by engine and operator."""
    asked, counted = [engine(it) for it in engines], {}
    wrong: list[str] = []
    for (name, version), draw in draws.items():
        for number in numbers:
            drawn, made = case(draw, name, version, number)
            for result in judge_engines(asked, made):
                word = _word(name, drawn, result, known)
                key = (result.engine, f"{name}-{version}", word or "unexplained")
                counted[key] = counted.get(key, 0) + 1
                if not word:
                    wrong.append(
                        f"{result.case} {result.engine}: {result.outcome} {result.kind} {result.why} {_told(drawn)}"
                    )
    return wrong, counted


def _told(drawn: Drawn) -> str:
    """An application in one line; small integers with their values."""
    shown = (
        "" if x is None else f"{x.dtype}{x.tolist() if x.dtype.kind in 'iu' and x.size < 5 else list(x.shape)}"
        for x in drawn.inputs
    )
    return f"({', '.join(shown)}) {dict(drawn.attributes)}"


def _word(name: str, drawn: Drawn, result: Result, known: Sequence[Known]) -> str:
    """The class of a result that needs no explanation, or the explanation; "" where there is none."""
    if result.outcome in (Class.PASS, Class.FREEDOM) or (result.outcome is Class.REFUSED and _declined(result)):
        return result.outcome.value
    if result.outcome is Class.HARNESS:
        return ""
    fitting = (it for it in known if it.engine == result.engine and name in it.operators.split())
    return next((it.entry for it in fitting if it.when(drawn, result)), "")


def _declined(result: Result) -> bool:
    """The engine has no code for the model, or cannot take its values."""
    return result.kind in {it.value for it in REFUSALS} - {"invalid"}
