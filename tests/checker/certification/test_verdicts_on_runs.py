"""What is decided before a run is what happens in runs: on random small models, sizes and data, against the machine.

Holds: no run is stuck. Conditional: a run is stuck exactly where the sizes are outside of the conditions. Obligation: a
run is stuck only at a node that is listed, and only where a condition that is listed fails. Violated: every run is.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from conditions_on_runs import Unsettled, holds, stuck_at, values_at
from onnx import GraphProto, ModelProto, parser
from sonnx.checker.certification.certifier import certify
from sonnx.checker.certification.report import Report, RuleVerdict
from sonnx.semantics.machine.execution import run
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.values import Value

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
Draw = Callable[[random.Random], str]


def _size(draw: random.Random) -> str:
    return draw.choice(["N", "M", "2", "3", "K"])


def _shape(draw: random.Random, rank: int) -> str:
    return ",".join(_size(draw) for _ in range(rank))


def _numbers(draw: random.Random, count: int) -> str:
    return ",".join(str(draw.choice([-1, 0, 1, 2, 3, 6])) for _ in range(count))


def add(d: random.Random) -> str:
    return f"(float[{_shape(d, 2)}] x, float[{_shape(d, 2)}] z) => (float[a,b] y) {{ y = Add(x, z) }}"


def chained(d: random.Random) -> str:
    return (
        f"(float[{_shape(d, 2)}] x, float[{_shape(d, 2)}] z, float[{_shape(d, 2)}] w) => (float[a,b] y)"
        " { u = MatMul(x, z) v = Transpose(w) y = Add(u, v) }"
    )


def reshape(d: random.Random) -> str:
    return (
        f"(float[{_shape(d, 2)}] x) => (float[a,b] y) <int64[2] s = {{{_numbers(d, 2)}}}>"
        " { u = Reshape(x, s) y = Add(u, x) }"
    )


def reshaped_by_data(d: random.Random) -> str:
    return (
        f"(float[{_shape(d, 2)}] x, int64[2] s, float[{_shape(d, 2)}] w) => (float[a,b] y)"
        " { u = Reshape(x, s) y = MatMul(u, w) }"
    )


def positions(d: random.Random) -> str:
    operator = d.choice(["NonZero", "NonZero", "NonZero"])
    behind = d.choice(["y = MatMul(u, w)", "y = Gather<axis=1>(u, k)", "y = Add(u, w)"])
    return (
        f"(float[{_shape(d, 1)}] x, float[{_shape(d, 2)}] w, int64[1] k) => (float[a,b] y)"
        f" {{ p = {operator}(x) u = Cast<to=1>(p) {behind} }}"
    )


def gathered(d: random.Random) -> str:
    return (
        f"(float[{_shape(d, 2)}] x, int64[{_size(d)}] k, float[{_shape(d, 2)}] z) => (float[a,b] y)"
        " { u = Gather<axis=0>(x, k) y = Add(u, z) }"
    )


def expanded(d: random.Random) -> str:
    return f"(float[{_shape(d, 2)}] x, int64[2] s, float[3] w) => (float[a,b] y) {{ u = Expand(x, s) y = Add(u, w) }}"


def ranged(d: random.Random) -> str:
    return (
        f"(int64 e, int64[{_size(d)}] x) => (int64[a] y) <int64 o = {{0}}, int64 t = {{{d.choice([1, 2])}}}>"
        " { r = Range(o, e, t) y = Add(r, x) }"
    )


def branched(d: random.Random) -> str:
    one, other = _numbers(d, 2), _numbers(d, 2)
    return (
        f"(float[{_shape(d, 2)}] x, bool c, float[{_shape(d, 2)}] w) => (float[a,b] y) {{ u = If (c) <"
        f"then_branch = p () => (float[q,r] t) <int64[2] s = {{{one}}}> {{ t = Reshape(x, s) }},"
        f"else_branch = o () => (float[v,l] e) <int64[2] k = {{{other}}}> {{ e = Reshape(x, k) }}> y = Add(u, w) }}"
    )


def looped(d: random.Random) -> str:
    step = d.choice(["Add(h, x)", "Concat<axis=0>(h, x)", "Transpose(h)", "MatMul(h, x)"])
    trips = d.choice(["int64 m", f"<int64 m = {{{d.choice([0, 1, 3])}}}>"])
    inputs = f"(float[{_shape(d, 2)}] x, float[{_shape(d, 2)}] w{', int64 m' if trips == 'int64 m' else ''})"
    constants = "" if trips == "int64 m" else trips
    return (
        f"{inputs} => (float[a,b] y) {constants} {{ g = Constant<value = bool {{1}}>()"
        " u = Loop (m, g, x) <body = b (int64 i, bool c, float h) => (bool o, float k) {"
        f" o = Identity(c) k = {step} }}> y = Add(u, w) }}"
    )


def cut(d: random.Random) -> str:
    return (
        f"(float[{_shape(d, 1)}] x, int64[1] s, int64[1] e, float[{_size(d)}] w) => (float[a] y)"
        " { u = Slice(x, s, e) y = Add(u, w) }"
    )


def squeezed(d: random.Random) -> str:
    return f"(float[{_shape(d, 3)}] x, float[{_size(d)}] w) => (float[a] y) {{ u = Squeeze(x) y = Add(u, w) }}"


DRAFTS: Mapping[str, Draw] = {
    it.__name__: it
    for it in (
        add, chained, reshape, reshaped_by_data, positions, gathered, expanded, ranged, branched, looped, cut, squeezed,
    )
}  # fmt: skip
RUNS = 12


def drawn(name: str, seed: int) -> ModelProto:
    text = DRAFTS[name](random.Random(f"{name} {seed}"))
    model = parser.parse_model(f"{HEADER}g {text}")
    undeclare(model.graph, whole=False)
    return model


def undeclare(graph: GraphProto, *, whole: bool) -> None:
    """Take the shapes of outputs away, of bodies those of inputs too: what is computed counts."""
    for it in (*graph.output, *(graph.input if whole else ())):
        it.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                undeclare(attribute.g, whole=True)


def inputs(model: ModelProto, draw: random.Random) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    sizes: dict[str, int] = {}
    given = {}
    stored = {it.name for it in model.graph.initializer}
    for it in model.graph.input:
        if it.name in stored:
            continue
        shape = []
        for dim in it.type.tensor_type.shape.dim:
            shape.append(sizes.setdefault(dim.dim_param, draw.choice([1, 1, 2, 3])) if dim.dim_param else dim.dim_value)
        kind = it.type.tensor_type.elem_type
        if kind == 9:
            given[it.name] = np.array(draw.random() < 0.5)
        elif kind == 7:
            given[it.name] = np.array([draw.choice([-2, -1, 0, 1, 2, 3]) for _ in range(int(np.prod(shape)))], "i8")
        else:
            given[it.name] = np.array([draw.choice([0.0, 0.0, 1.0]) for _ in range(int(np.prod(shape)))], "f4")
        given[it.name] = given[it.name].reshape(shape)
    return sizes, given


def places(report: Report) -> set[str]:
    """The nodes at which a run may get stuck by its data."""
    found = set()
    for rule in report.rules:
        for it in (*rule.findings, *(it for row in rule.besides.values() for it in row)):
            if "sizes" not in it.witness:
                found |= {it.where, *map(str, it.witness.get("needed_by", ()))}  # type: ignore[arg-type]
    return found


def obligations(report: Report) -> list[object]:
    rows = []
    for rule in report.rules:
        if rule.verdict is RuleVerdict.OBLIGATION:
            rows += list(rule.findings)
        rows += list(rule.besides.get(RuleVerdict.OBLIGATION, ()))
    return [it.witness.get("condition") for it in rows]


def keeps(conditions: list[object], sizes: Mapping[str, int], values: Mapping[str, Value]) -> bool | None:
    """Whether all obligations hold of a run; None where the run does not tell."""
    told: list[bool] = []
    for condition in conditions:
        if condition is None:
            return None
        try:
            told.append(bool(holds(condition, sizes, values)))
        except (Unsettled, KeyError, IndexError):
            return None
    return all(told)


def judge(name: str, seed: int) -> Counter[str]:
    model = drawn(name, seed)
    report = certify(model, ["domain"], others=False)
    domain = report.domain
    assert domain is not None
    unknown = [(rule.id, rule.reason) for rule in report.rules if rule.verdict == "unknown"]
    assert domain.violated or not unknown, (seed, unknown)
    loaded = load_proto(model)
    seen: Counter[str] = Counter()
    text = f"{name} {seed}"
    for number in range(RUNS):
        sizes, given = inputs(model, random.Random(f"{name} {seed} {number}"))
        done = run(loaded, given, history=False)
        state = done.states[-1]
        within = all(bool(holds(term, sizes, {})) for term in domain.terms)
        if domain.violated:
            assert done.stuck is not None, f"{text}: violated, and a run with {given} ends"
            seen["violated"] += 1
            continue
        if not within:
            assert done.stuck is not None, f"{text}: {sizes} is outside of {domain.conditions}, and a run ends"
            seen["outside"] += 1
            continue
        kept = keeps(obligations(report), sizes, values_at(loaded, state))
        if done.stuck is None:
            assert kept is not False, f"{text}: an obligation fails for {given}, and the run ends"
            seen["kept" if kept else "ended"] += 1
            continue
        n = stuck_at(loaded, state)
        assert n is not None
        path = loaded.nodes[n].path
        assert path in places(report), f"{text}: stuck at {path} with {given}: {done.stuck.message}"
        assert kept is not True, f"{text}: every obligation holds for {given}, and the run is stuck at {path}"
        seen["data"] += 1
    if domain.conditions and "false" not in domain.conditions:
        assert all(bool(holds(term, dict(domain.example), {})) for term in domain.terms), text
    return seen


@pytest.mark.parametrize("name", DRAFTS)
def test_runs_do_what_the_verdict_says(name: str) -> None:
    for seed in range(3):
        judge(name, seed)


@pytest.mark.campaign
@pytest.mark.parametrize("name", DRAFTS)
def test_many_runs_do_what_the_verdict_says(name: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        seen += judge(name, seed)
    assert seen.total() == 400 * RUNS
