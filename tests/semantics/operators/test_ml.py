"""Operators of ai.onnx.ml against onnxruntime, and by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import ml_cases
import numpy as np
import onnx
import pytest
from ml_cases import Array, Case, stated
from onnx import TensorProto, helper, numpy_helper
from sampling import seeds
from sonnx.checker.runtimes.deviations.ledger import ledger
from sonnx.semantics.operators.application import Application, Stuck
from sonnx.semantics.operators.compiled import bound, ieee

DOMAIN = "ai.onnx.ml"


def onnxruntime_of(op_type: str, version: int, inputs: Sequence[Array], attributes: dict[str, Any]) -> list[Any] | str:
    """What onnxruntime gives; why it refuses."""
    schema = onnx.defs.get_schema(op_type, version, DOMAIN)
    names = [f"x{k}" for k in range(len(inputs))]
    node = helper.make_node(op_type, names, [port.name for port in schema.outputs], domain=DOMAIN, **attributes)
    kinds = [TensorProto.STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype) for x in inputs]
    given = [helper.make_tensor_value_info(n, k, x.shape) for n, k, x in zip(names, kinds, inputs, strict=True)]
    graph = helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name=port.name) for port in schema.outputs])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, version)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, dict(zip(names, inputs, strict=True))))
    except Exception as problem:
        return str(problem)


@cache
def texts() -> Any:
    """From texts to the bytes of which elements are made."""
    return np.vectorize(lambda text: text.encode(), otypes=[object])


def stored(x: Array) -> Array:
    return texts()(x) if x.dtype == object and x.size else x


def verdict(op_type: str, version: int, case: Case) -> str:
    """How what onnxruntime gives for a case stands to the text."""
    return judged(op_type, version, case, onnxruntime_of(op_type, version, *case))


def judged(op_type: str, version: int, case: Case, theirs: list[Any] | str) -> str:
    """How what a runtime gives stands to what the text gives for a case."""
    inputs, attributes = case
    count = len(onnx.defs.get_schema(op_type, version, DOMAIN).outputs)
    asked = Application(
        f"{DOMAIN}::{op_type}", version, tuple(map(stored, inputs)), stated(attributes), (True,) * count
    )
    ours = ieee.apply(asked)
    if isinstance(ours, Stuck) or isinstance(theirs, str):
        return "refused" if isinstance(theirs, str) else f"refused here: {ours}"
    pairs = [(np.asarray(x), stored(np.asarray(y))) for x, y in zip(ours.values, theirs, strict=True)]
    if any((x.shape, x.dtype) != (y.shape, y.dtype) for x, y in pairs):
        return "another shape or type"
    if all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in pairs):
        return "same"
    limits = bound.apply(asked)
    assert isinstance(limits, bound.Bounds)
    for (x, y), allowed in zip(pairs, limits.values, strict=True):
        if not isinstance(allowed, bound.Allowed):
            if not np.array_equal(x, y):
                return f"other texts: {y}"
            continue
        wide = y.astype(np.float64) if y.dtype.kind == "f" else y
        nan = np.isnan(wide) if y.dtype.kind == "f" else np.zeros(y.shape, bool)
        inside = np.where(nan, allowed.maybe_nan, ~allowed.nan & (wide >= allowed.least) & (wide <= allowed.most))
        if not inside.all():
            return f"outside: {x[~inside][0]!r} here, {y[~inside][0]!r} there"
    return "inside"


Difference = Callable[[Case, str], bool]


def transforms(case: Case, said: str) -> bool:
    """An approximation of the logistic function, apart from it by less than 1e-6."""
    return said.startswith("outside") and case[1].get("post_transform") == "LOGISTIC" and approximate(said)


def nan_at_neq(case: Case, said: str) -> bool:
    """A NaN takes the true child of BRANCH_NEQ."""
    (x,), attributes = case
    return "BRANCH_NEQ" in attributes["nodes_modes"] and x.dtype.kind == "f" and bool(np.isnan(x).any())


def both_of_two(attributes: Mapping[str, Any]) -> bool:
    """There are two classes, and both have weights."""
    labels = [*attributes.get("classlabels_int64s", ()), *attributes.get("classlabels_strings", ())]
    return len(labels) == 2 and {*attributes["class_ids"]} == {0, 1}


def two_labels(case: Case, said: str) -> bool:
    """Of two classes that both have weights the label 0 or 1 is given."""
    return both_of_two(case[1]) and said.startswith(("outside: np.int64", "other texts"))


def two_bases(case: Case, said: str) -> bool:
    """Of two classes that both have weights the second base value is added to the first score."""
    return both_of_two(case[1]) and any(name.startswith("base_values") for name in case[1])


def exchanged(case: Case, said: str) -> bool:
    """SOFTMAX and LOGISTIC by the number of the other one, and nothing else is different."""
    inputs, attributes = case
    how = attributes.get("post_transform")
    if how not in (1, 2):
        return False
    theirs = onnxruntime_of("TreeEnsemble", 5, inputs, attributes)
    other = judged("TreeEnsemble", 5, (inputs, {**attributes, "post_transform": 3 - how}), theirs)
    return other in ("same", "inside") or approximate(other)


def near_in_double(case: Case, said: str) -> bool:
    """A transform of doubles, apart from it by less than 1e-6; by less than 1e-4 for PROBIT, which is steep."""
    how = case[1].get("post_transform", 0)
    return how > 0 and approximate(said, 1e-4 if how == 4 else 1e-6)


def no_integer_among_members(case: Case, said: str) -> bool:
    """There are sets of members, and rows with numbers that are no integers."""
    (x,), attributes = case
    return 6 in numpy_helper.to_array(attributes["nodes_modes"]) and bool((np.trunc(x) != x).any())


def nan_at_number_5(case: Case, said: str) -> bool:
    """A NaN takes the true child of mode 5."""
    (x,), attributes = case
    return 5 in numpy_helper.to_array(attributes["nodes_modes"]) and bool(np.isnan(x).any())


def approximate(said: str, apart: float = 1e-6) -> bool:
    """The two numbers are less than so much apart."""
    numbers = re.findall(r"float\d+\((\S+)\)", said)
    return len(numbers) == 2 and abs(float(numbers[0]) - float(numbers[1])) < apart


def supported(case: Case) -> bool:
    """A support vector machine with support vectors."""
    return sum(case[1]["vectors_per_class"]) > 0


def second_label(case: Case, said: str) -> bool:
    """Two classes without support vectors, of which the second label is given."""
    return said.startswith(("outside: np.int64", "other texts")) and two_classes(case) and not supported(case)


def transform_of_one(case: Case, said: str) -> bool:
    """The transforms over scores, and two classes that have one."""
    how = case[1]["post_transform"]
    return how in ("SOFTMAX", "SOFTMAX_ZERO") and two_classes(case) and supported(case) and "prob_a" not in case[1]


def two_classes(case: Case) -> bool:
    return len(case[1]["vectors_per_class"]) == 2


EXPLAINED: Mapping[tuple[str, str], Difference] = {
    ("Imputer", "Imputer-1/rank"): lambda case, said: case[0][0].ndim > 2,
    ("LinearClassifier", "LinearClassifier-1/logistic"): transforms,
    ("LinearRegressor", "LinearRegressor-1/logistic"): transforms,
    ("SVMClassifier", "SVMClassifier-1/two"): second_label,
    ("SVMClassifier", "SVMClassifier-1/transform"): transform_of_one,
    ("SVMClassifier", "SVMClassifier-1/logistic"): transforms,
    ("TreeEnsemble", "TreeEnsemble-5/transform"): exchanged,
    ("TreeEnsemble", "TreeEnsemble-5/probit"): near_in_double,
    ("TreeEnsemble", "TreeEnsemble-5/between"): no_integer_among_members,
    ("TreeEnsemble", "TreeEnsemble-5/nan"): nan_at_number_5,
    ("TreeEnsembleClassifier", "TreeEnsembleClassifier-3/base"): two_bases,
    ("TreeEnsembleClassifier", "TreeEnsembleClassifier-3/two"): two_labels,
    ("TreeEnsembleClassifier", "TreeEnsembleRegressor-3/nan"): nan_at_neq,
    ("TreeEnsembleClassifier", "LinearClassifier-1/logistic"): transforms,
    ("TreeEnsembleRegressor", "TreeEnsembleRegressor-3/nan"): nan_at_neq,
    ("TreeEnsembleRegressor", "LinearRegressor-1/logistic"): transforms,
}
"""By operator and case of the ledger the differences that it is about."""


def explained(op_type: str, case: Case, said: str) -> bool:
    """True for a difference that the ledger has."""
    return any(name == op_type and about(case, said) for (name, _), about in EXPLAINED.items())


def test_the_ledger_has_what_explains_differences() -> None:
    assert {f"{DOMAIN}::{name}" for _, name in EXPLAINED} <= {case.name for case in ledger()}


ALL = {**ml_cases.FEATURES, **ml_cases.LINEAR, **ml_cases.TREES, **ml_cases.VECTORS}


TRIES = 60
"""So many cases of a seed are made until onnxruntime takes one; it has few element types."""


@pytest.mark.parametrize("chosen", seeds(200, 3))
@pytest.mark.parametrize(("op_type", "version"), sorted(ALL), ids=lambda it: str(it))
def test_onnxruntime_gives_what_the_text_allows(op_type: str, version: int, chosen: range) -> None:
    wrong = {}
    for seed in chosen:
        rng = np.random.default_rng(seed)
        for case in (ALL[op_type, version](rng) for _ in range(TRIES)):
            said = verdict(op_type, version, case)
            if said != "refused":
                break
        if said not in ("same", "inside") and not explained(op_type, case, said):
            wrong[seed] = said
    assert not wrong


@pytest.mark.parametrize("chosen", seeds(1000, 20))
@pytest.mark.parametrize(("op_type", "version"), sorted(ALL), ids=lambda it: str(it))
def test_attributes_that_were_changed_are_refused_by_a_sentence_or_give_values(
    op_type: str, version: int, chosen: range
) -> None:
    """Nothing but a requirement of the text stops an application, and nothing is read that is not there."""
    count = len(onnx.defs.get_schema(op_type, version, DOMAIN).outputs)
    for seed in chosen:
        rng = np.random.default_rng(seed)
        inputs, attributes = ALL[op_type, version](rng)
        if not attributes:
            continue
        changed = stated(ml_cases.hurt(rng, attributes))
        asked = Application(f"{DOMAIN}::{op_type}", version, tuple(map(stored, inputs)), changed, (True,) * count)
        given = ieee.apply(asked)
        assert not isinstance(given, Stuck) or given.premise.endswith("."), (seed, given)


@pytest.mark.parametrize("chosen", seeds(400, 8))
def test_coupled_probabilities_are_near_those_of_onnxruntime(chosen: range) -> None:
    """Held apart from the bound, which grows with each round and of four classes mostly allows everything."""
    compared = 0
    for seed in chosen:
        inputs, attributes = ml_cases.support_classifier(np.random.default_rng(seed))
        if "prob_a" not in attributes:
            continue
        attributes["post_transform"] = "NONE"
        theirs = onnxruntime_of("SVMClassifier", 1, inputs, attributes)
        asked = Application(f"{DOMAIN}::SVMClassifier", 1, tuple(inputs), stated(attributes), (True, True))
        ours = ieee.apply(asked)
        assert not isinstance(ours, Stuck) and not isinstance(theirs, str)
        np.testing.assert_allclose(theirs[1], ours.values[1], rtol=0, atol=1e-4)
        compared += 1
    assert compared
