"""The search names the optimizers that are planted, on an engine that is the machine with faults."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import parser
from optimizing_engines import Effect, Fake, Optimizer
from planted_engines import one_bit
from sonnx.checker.runtimes.bisection.searching import Bisection, Verdict, bisect
from sonnx.checker.runtimes.bisection.trials import Answer, Criterion
from sonnx.semantics.model.values import Value
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.runtimes.engines.protocol import Failure, Kind

CHAIN = "float[2, n] x) => (float[2, n] y) { a = Abs(x)  b = Neg(a)  c = Tanh(b)  y = Identity(c) }"
IDLE = tuple(Optimizer(f"Idle{at}", 1 + at % 2) for at in range(5))
PASSES = (Optimizer("A", 1), Optimizer("B", 2), Optimizer("C", 2), *IDLE)
RULES = Optimizer("Rules", 1, ("RuleFusion", "OtherFusion", "Odd"))
FAILS = Failure(Kind.INVALID, "no such tensor")
DIES = Failure(Kind.CRASH, "signal 11")


def not_a_number(_: Application, done: Outputs) -> tuple[Value | None, ...]:
    """All elements of the first output are NaN."""
    value = done.values[0]
    assert isinstance(value, np.ndarray)
    return (np.full_like(value, np.nan), *done.values[1:])


def next_numbers(_: Application, done: Outputs) -> tuple[Value | None, ...]:
    """Each element of the first output is the next number below."""
    value = done.values[0]
    assert isinstance(value, np.ndarray)
    return (np.nextafter(value, np.float32(-np.inf)), *done.values[1:])


WRONG: Effect = ("Neg", not_a_number)


def engine(*effects: tuple[str, Effect], passes: tuple[Optimizer, ...] = (*PASSES, RULES), names: int = 0) -> Fake:
    """An engine with these effects, each of a set of optimizers."""
    held = {frozenset(names.split()): effect for names, effect in effects}
    return Fake(passes, held, [f"N{at}" for at in range(names)])


def asked(
    fake: Fake,
    chain: str = CHAIN,
    criterion: Criterion = Criterion.SPECIFICATION,
    seconds: float = 30.0,
    tell: Callable[[str], None] = lambda _: None,
) -> Bisection:
    source = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> g ({chain}').SerializeToString()
    feeds = {"x": np.array([[1, -2, 3], [0.5, 0, -0.25]], np.float32)}
    return bisect(fake, source, "given", feeds, criterion=criterion, seconds=seconds, tell=tell)


def names(found: Bisection) -> list[tuple[str, ...]]:
    return [it.names for it in found.guilty]


def test_one_optimizer_is_named_with_what_it_changes_and_the_least_case() -> None:
    fake = engine(("B", WRONG))
    found = asked(fake)
    assert (found.verdict, names(found), found.remedy, found.level) == (Verdict.GUILTY, [("B",)], ("B",), "all")
    assert found.default is not None and found.default.answer is Answer.OUTSIDE
    assert found.plain is not None and found.plain.answer is Answer.ALLOWED
    [(whose, change)] = found.guilty[0].changes
    assert (whose, change.removed, change.added) == (("B",), ("b = Neg(a)",), ("b = FusedNeg(a)",))
    assert found.smallest is not None and len(found.smallest.nodes) == 1
    assert found.smallest.default.answer is Answer.OUTSIDE
    assert [value.shape for value in found.smallest.case.feeds.values() if isinstance(value, np.ndarray)] == [(1, 1)]
    assert fake.closed == 1


def test_the_level_is_the_lowest_at_which_it_shows() -> None:
    assert asked(engine(("A", WRONG))).level == "some"


def test_a_pair_is_named_and_one_of_it_is_to_be_switched_off() -> None:
    found = asked(engine(("A C", WRONG)))
    assert names(found) == [("A", "C")]
    assert found.remedy is not None and len(found.remedy) == 1


def test_optimizers_that_are_wrong_each_by_itself_are_all_named_and_all_switched_off() -> None:
    found = asked(engine(("A", WRONG), ("C", ("Tanh", not_a_number))))
    assert names(found) == [("A",), ("C",)]
    assert found.remedy == ("A", "C")


@pytest.mark.parametrize("failure", [FAILS, DIES, Failure(Kind.TIMEOUT, "stopped")], ids=lambda it: it.kind.value)
def test_a_session_that_fails_or_dies_is_a_result_with_optimizers_to_blame(failure: Failure) -> None:
    found = asked(engine(("A B", failure)))
    assert names(found) == [("A", "B")]
    assert found.default is not None and found.default.failure == failure
    assert found.smallest is not None and found.smallest.default.failure == failure
    assert all(it.names == ("A", "B") for it in found.guilty)


def test_what_a_failure_hides_is_found_when_its_optimizers_are_off() -> None:
    found = asked(engine(("A", FAILS), ("C", FAILS), passes=PASSES))
    assert names(found) == [("A",), ("C",)]
    assert found.remedy == ("A", "C")


@pytest.mark.parametrize(("names_there", "guilty"), [(0, "RuleFusion"), (3000, "RuleFusion"), (3000, "Odd")])
def test_a_rule_of_a_transformer_is_found_among_all_names_of_the_library(names_there: int, guilty: str) -> None:
    fake = engine((guilty, WRONG), names=names_there)
    found = asked(fake)
    assert names(found) == [(guilty,)]
    assert found.remedy == (guilty,)
    assert len(found.guilty[0].changes) == 1
    assert found.runs < 40


def test_rules_that_are_wrong_only_together_are_told_apart_from_all_others() -> None:
    found = asked(engine(("RuleFusion OtherFusion", WRONG), names=3000))
    assert names(found) == [("RuleFusion", "OtherFusion")]


def test_a_transformer_is_named_whose_rules_have_no_names_here() -> None:
    fake = engine(("Hidden", WRONG), passes=(*PASSES, Optimizer("Rules", 1, ("Hidden",))))
    fake.parts = lambda name: ("Other",) if name == "Rules" else ()  # type: ignore[method-assign]
    assert names(asked(fake)) == [("Rules",)]


def test_each_run_of_the_search_is_in_a_process_of_its_own() -> None:
    fake = engine(("B", WRONG))
    found = asked(fake)
    assert sum(apart for _, apart in fake.opened) >= found.runs
    assert all(apart for _, apart in fake.opened[: found.runs])


def test_nothing_is_wrong_where_every_output_is_allowed() -> None:
    found = asked(engine())
    assert (found.verdict, found.guilty, found.runs) == (Verdict.RIGHT, (), 2)


def test_no_optimizer_is_to_blame_for_what_happens_without_them_too() -> None:
    fake = engine()
    fake.effects = {frozenset(): WRONG}
    found = asked(fake)
    assert (found.verdict, found.guilty) == (Verdict.PLAIN, ())
    fake.effects = {frozenset(): FAILS}
    assert asked(fake).verdict is Verdict.PLAIN


def test_it_is_undecided_where_the_specification_gives_no_result() -> None:
    found = asked(
        engine(("A", WRONG)),
        "float[2, n] x) => (float[2, m] y) { y = Reshape(x, s) }".replace("{ y", "<int64[2] s = {2, 5}> { y"),
    )
    assert found.verdict is Verdict.UNDECIDED
    assert "outside the domain" in found.reason


def test_it_is_undecided_when_the_time_is_over_and_says_how_far_it_came() -> None:
    found = asked(engine(("A", WRONG)), seconds=1e-9)
    assert (found.verdict, found.guilty) == (Verdict.UNDECIDED, ())


def test_bits_decide_on_request_what_the_specification_allows() -> None:
    fake = engine(("C", ("Tanh", one_bit)))
    assert asked(fake).verdict is Verdict.RIGHT
    found = asked(fake, criterion=Criterion.BITS)
    assert names(found) == [("C",)]
    assert found.smallest is not None and len(found.smallest.nodes) == 1


def test_a_part_tells_what_the_bound_of_the_whole_model_hides() -> None:
    whole = "float[2, n] x) => (float[2, n] y) { a = Abs(x)  b = Neg(a)  c = Exp(b)  y = Tanh(c) }"
    found = asked(engine(("B", ("Neg", next_numbers))), whole)
    assert names(found) == [("B",)]
    assert found.part == "/1:Neg"
    assert found.whole is not None and found.whole.verdict is Verdict.RIGHT and found.whole.differs


def test_parts_that_are_right_alone_are_counted() -> None:
    found = asked(engine(("C", ("Tanh", one_bit))))
    assert found.verdict is Verdict.RIGHT
    assert "of 1 part that optimizers change, each is right alone too" in found.reason


def test_an_interrupt_keeps_what_is_known() -> None:
    def tell(what: str) -> None:
        if "small" in what:
            raise KeyboardInterrupt

    found = asked(engine(("A", WRONG)), tell=tell)
    assert (found.verdict, names(found), found.smallest) == (Verdict.GUILTY, [("A",)], None)
    assert found.stopped is not None
