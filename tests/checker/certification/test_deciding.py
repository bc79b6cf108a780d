"""Deciding by worker processes: the same answers as in this process, and no way to lose one."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

import pytest
from sonnx.checker.certification import deciding
from sonnx.checker.certification.deciding import Task, decided, judge_constraints
from sonnx.checker.certification.examples import write
from sonnx.checker.certification.rule_sets import constraints, reached, resolve
from sonnx.semantics.errors import InternalError
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.model.loader import load
from sonnx.spec.library import specification

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


def silent(_what: str, _done: int, _total: int) -> None:
    pass


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("examples")
    write(folder)
    return sorted(folder.glob("*.onnx"))


def task(path: Path) -> Task:
    specification_ = specification()
    needed = constraints(specification_, resolve(specification_, ("sonnx-2025-05", "sonnx-2025-10")))
    return Task(needed, specification_.functions, structure(load(path), None), 60, None)


@pytest.mark.parametrize("step", [pytest.param(5, id="sample"), pytest.param(1, id="all", marks=pytest.mark.campaign)])
def test_processes_decide_as_this_process_does(examples: list[Path], step: int) -> None:
    """Every fifth example; all in the campaign."""
    verdicts = set()
    for path in examples[::step]:
        one = task(path)
        ours, theirs = (judge_constraints(replace(one, forks=forks), silent) for forks in (False, True))
        assert ours.keys() == theirs.keys()
        for name, judged in ours.items():
            assert (judged.verdict, judged.judgement) == (theirs[name].verdict, theirs[name].judgement), (path, name)
            assert judged.answer.answers == theirs[name].answer.answers
            assert judged.answer.core == theirs[name].answer.core
            verdicts.add(judged.verdict)
    assert len(verdicts) > 1


def test_a_constraint_asks_for_no_other_facts_than_it_is_said_to_need(examples: list[Path]) -> None:
    """So no table is given back that is asked for again, and what is given back is built as it was."""
    for path in examples[::9]:
        one = task(path)
        again = task(path)
        for constraint in one.constraints:
            needs = deciding.needed((constraint,), one.functions)
            one.facts.forget(needs)
            assert decided(constraint, one) == replace(decided(constraint, again), answer=ANY), (path, constraint.name)
            assert {*one.facts._tables, *one.facts.derived} <= needs | {"fixpoints"}


def test_an_error_in_a_worker_is_raised_here(examples: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object, **_options: object) -> None:
        raise InternalError("broken on purpose")

    monkeypatch.setattr(deciding.direct, "judge", broken)
    with pytest.raises(InternalError, match="broken on purpose"):
        judge_constraints(replace(task(examples[0]), forks=True), silent)


def test_a_worker_that_dies_is_an_error(examples: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_arguments: object, **_options: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(deciding.direct, "judge", killed)
    with pytest.raises(InternalError, match="a worker process ended"):
        judge_constraints(replace(task(examples[0]), forks=True), silent)


def test_every_constraint_is_reported_as_it_begins(examples: list[Path]) -> None:
    told: list[str] = []
    one = replace(task(examples[0]), forks=True)
    judge_constraints(one, lambda what, _done, _total: told.append(what))
    assert {f"checking {constraint.name}" for constraint in one.constraints} <= set(told)


def test_a_constraint_reaches_what_its_definitions_mention() -> None:
    specification_ = specification()
    completeness = specification_.constraints["Completeness"]
    names = {it.name for it in reached(completeness.formula, specification_.functions)}
    assert {"valued", "executable", "is_input", "producers"} <= names
    assert "contributes" not in names


def test_no_process_is_forked_while_another_thread_certifies(examples: list[Path]) -> None:
    """It could lack for ever what that thread holds at the fork."""
    one = replace(task(examples[0]), forks=True)
    with deciding.under_way():
        assert deciding._by_processes(one, silent)
        with deciding.under_way():  # as of another thread
            assert deciding._by_processes(one, silent) is None
            assert judge_constraints(one, silent).keys() == {it.name for it in one.constraints}
        assert deciding._by_processes(one, silent)
    assert not deciding._UNDER_WAY
