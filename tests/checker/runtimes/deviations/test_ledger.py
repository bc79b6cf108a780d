"""The ledger of deviations: the machine gives what the specification says, the runtimes deviate as is recorded."""

from __future__ import annotations

import ledger_runtimes as runtimes
import numpy as np
import pytest
from ledger_runtimes import free_elements, judge, known_masks
from sonnx.checker.runtimes.deviations.ledger import CRASH, PLAIN, Case, Outcome, ledger, read
from sonnx.checker.runtimes.deviations.standing import Recorded, difference, rewriters, source
from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.spec.language.syntax import Operator, clause
from sonnx.spec.library import specification
from sonnx.spec.parsed import ROOT

CASES = ledger()
BY_NAME = [pytest.param(case, id=case.name) for case in CASES]
EXACT = 0.0


def definition(case: Case) -> Operator | None:
    given = specification().operators.get(case.operator, ())
    return next((it for it in given if it.first <= case.version <= it.last), None)


@pytest.mark.parametrize("case", BY_NAME)
def test_the_machine_gives_what_the_specification_says(case: Case) -> None:
    if not case.defined:
        with pytest.raises(Unsupported, match=case.operator):
            runtimes.machine(case)
        return
    found, free = runtimes.machine(case)
    assert difference(found, case.outcome, known_masks(free), EXACT) == ""
    assert found.refused == case.outcome.refused


@pytest.mark.parametrize("case", BY_NAME)
def test_the_reference_evaluator_deviates_as_recorded(case: Case) -> None:
    version = runtimes.version_of_reference()
    assert judge(case, "onnx.reference", version, runtimes.reference(case), free_elements(case)) == ""


@pytest.mark.skipif(runtimes.interpreter() is None, reason="onnxruntime is not installed, SONNX_ONNXRUNTIME is not set")
@pytest.mark.parametrize("case", BY_NAME)
def test_onnxruntime_deviates_as_recorded(case: Case) -> None:
    if not runtimes.accepted(case):
        pytest.skip("the Python interface of onnxruntime takes no arrays of this element type")
    version, found = runtimes.onnxruntime()
    known = [it for one in CASES for it in one.deviations if it.runtime == "onnxruntime"]
    recorded = {it for one in known for it in (*one.versions, *one.gone)}
    if version not in recorded:
        pytest.skip(f"the ledger says nothing about onnxruntime {version}, which is installed")
    assert judge(case, "onnxruntime", version, found[case.name], free_elements(case)) == ""


@pytest.mark.parametrize("case", BY_NAME)
def test_a_case_is_marked_as_undefined_until_the_operator_is_defined(case: Case) -> None:
    defined = case.operator in specification().rewrites if case.rewrite else definition(case) is not None
    assert case.defined == defined, "state or remove `defined = false`"


@pytest.mark.parametrize("case", [it for it in BY_NAME if it.values[0].defined and it.values[0].outcome.refused])
def test_the_basis_of_a_refusal_is_who_demands_the_condition(case: Case) -> None:
    operator = definition(case)
    assert operator is not None
    required = [s for s in operator.statements if s.kind == "require" and s.doc == case.outcome.refused]
    assert [clause(s.clauses, "demanded") == "ONNX" for s in required] == [case.basis == "stated"]


def test_the_files_of_the_ledger_are_named_after_those_of_the_specification() -> None:
    from sonnx.checker.runtimes.deviations.ledger import FOLDER

    families = {path.stem for path in (ROOT / "5-operators").rglob("*.sonnx")}
    assert {path.stem for path in FOLDER.glob("*.toml")} <= families | {"rewrites"}


# ---- the judgement itself -----------------------------------------------------------------------


def outcome(*values: float) -> Outcome:
    return Outcome({"Y": np.array(values, np.float32)})


CASE = """
[[case]]
name = "Relu-14/one"
basis = "decided"
sentence = "It stays."
cites = "Relu-14"
graph = "g (float[1] X) => (float[1] Y) { Y = Relu (X) }"
inputs.X = [1]
outputs.Y = [1]

[[case.deviations]]
runtime = "onnxruntime"
versions = ["1.0"]
gone = ["2.0"]
sentence = "Doubles."
source = "observed"
outputs.Y = [2]
"""


@pytest.mark.parametrize(
    ("version", "found", "verdict"),
    [
        ("1.0", outcome(2), ""),
        ("1.0", outcome(2.00001), ""),
        ("1.0", outcome(1), "no longer"),
        ("1.0", outcome(3), "in another way"),
        ("1.0", Outcome(None, "Fail"), "in another way"),
        ("1.0", Outcome(None, CRASH), "in another way"),
        ("2.0", outcome(1), ""),
        ("2.0", outcome(2), "again"),
        ("3.0", outcome(2), ""),
        ("3.0", outcome(1), "no longer"),
    ],
)
def test_a_deviation_that_disappears_or_changes_is_told(version: str, found: Outcome, verdict: str) -> None:
    (case,) = read("a.toml", CASE)
    told = judge(case, "onnxruntime", version, found, {})
    assert verdict in told
    assert bool(told) == bool(verdict)


def test_a_deviation_that_the_ledger_does_not_know_is_told() -> None:
    (case,) = read("a.toml", CASE)
    assert judge(case, "onnx.reference", "1.0", outcome(2), {}).startswith(Recorded.UNKNOWN)
    assert judge(case, "onnx.reference", "1.0", Outcome(None, "ValueError"), {}).startswith(Recorded.UNKNOWN)
    assert judge(case, "onnx.reference", "1.0", outcome(2), {"Y": np.array([True])}) == ""


def test_an_optimizer_makes_no_deviation_where_it_is_switched_off() -> None:
    made = CASE.replace("[[case", "[[rewrite").replace('gone = ["2.0"]', 'passes = ["Doubling"]')
    (case,) = read("rewrites.toml", made)
    assert judge(case, "onnxruntime", "1.0", outcome(2), {}) == judge(case, PLAIN, "1.0", outcome(1), {}) == ""
    assert judge(case, PLAIN, "1.0", outcome(2), {}).startswith(Recorded.UNKNOWN)
    assert source(case, "onnxruntime") == "observed (by Doubling)"


def test_who_makes_a_rewrite_is_told() -> None:
    (told,) = rewriters("ConvMulBits")
    assert told == "ConvMulBits-18/great: onnxruntime 1.32.0 (by ConvMulFusion); onnxsim 0.8.1"
    assert list(rewriters("UntransposedGemm")) == ["UntransposedGemm-18/identity: none makes it now"]
    assert list(rewriters("ConvMul")) == []


def test_zeros_of_different_sign_differ_and_nans_do_not() -> None:
    assert difference(outcome(-0.0), outcome(0.0)) != ""
    assert difference(outcome(np.nan), outcome(np.nan), tolerance=EXACT) == ""
    assert difference(outcome(np.nan), outcome(1.0)) != ""
    assert difference(outcome(1.0, 1.0), outcome(1.0)) != ""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('basis = "decided"', "", "state 'basis'"),
        ('basis = "decided"', 'basis = "guessed"', "one of stated, decided"),
        ('basis = "decided"', 'basis = "decided"\nkey = 1', "no key 'key'"),
        ('name = "Relu-14/one"', 'name = "Relu"', "no name of a case"),
        ("inputs.X = [1]", "", "a value for each of X"),
        ("inputs.X = [1]", 'inputs.X = ["a"]', "X: could not convert"),
        ("outputs.Y = [1]", "outputs.Z = [1]", "a value for each of Y"),
        ("outputs.Y = [1]", "", "either 'outputs' or 'refused'"),
        ('versions = ["1.0"]', 'versions = ["2.0"]', "state the versions that deviate"),
        ('versions = ["1.0"]', 'versions = "1.0"', "a list of texts"),
        ('runtime = "onnxruntime"', 'runtime = "other"', "one of onnx.reference, onnxruntime"),
        ('runtime = "onnxruntime"', 'runtime = "onnxsim"', "one of onnx.reference, onnxruntime"),
        ('runtime = "onnxruntime"', 'runtime = "onnx.reference"\npasses = ["P"]', "only onnxruntime has 'passes'"),
        ("[[case]]", "[case]", "list of tables"),
        ("[[case", "[[cases", "no key 'cases'"),
        ("inputs.X = [1]", "inputs.X = [1", "a.toml: "),
    ],
)
def test_a_file_that_does_not_say_what_it_must_is_refused(old: str, new: str, said: str) -> None:
    assert CASE.count(old)
    with pytest.raises(InternalError, match=said):
        read("a.toml", CASE.replace(old, new))
