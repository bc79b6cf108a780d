"""Certification: every rule of the rule sets asked for and included, decided by the solver on the facts of one model.

For each constraint the verdict is the solver's answer on facts plus negated formula. The direct evaluator judges the
same text on its own; a disagreement is a defect of this package and raises InternalError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load, load_proto
from sonnx.semantics.model.loader.source import check_texts
from sonnx.semantics.resources.process import paused
from sonnx.spec.library import specification
from sonnx.spec.project import Waiver
from sonnx.spec.terminal import Progress

from . import deciding, results, scheduling
from . import rule_sets as sets
from .question import Question, Sizes, question
from .report import Report, Stated

if TYPE_CHECKING:
    from onnx import ModelProto

TIMEOUT = 60.0
"""Seconds that one solver query may take."""


def _silent(_what: str, _done: int, _total: int) -> None:
    """No progress shown."""


def certify(
    model: Path | str | Model | ModelProto,
    rules: str | Sequence[str] = sets.DEFAULT,
    *,
    timeout: float = TIMEOUT,
    strict: bool = False,
    others: bool = False,
    witnesses: bool = False,
    dump: Path | None = None,
    sizes: Sizes | None = None,
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
    types: bool = False,
    progress: Progress | None = None,
) -> Report:
    """The report on a model: a path, a loaded model or an ONNX protobuf.

    rules: a rule set or several (`name` or `name@variant`), or "all"; those that they include are judged with them.
    strict: rules with status TBC, defective, open or reported count too, what free sizes decide counts as violated,
    what data decide as undecided. others: judge the remaining rule sets as well; they are reported, and do not enter
    the verdict. witnesses: give each rule that holds the evidence which a certificate carries. timeout: seconds for
    each solver query. dump: a folder that gets a script of SMT-LIB 2 for every rule. sizes: the least and the greatest
    value (None: any) of symbolic sizes by name. waivers: violations that are accepted; one whose last day is before
    today (the day of the call where none is given) accepts nothing. types: the report gets those that ONNX's shape
    inference gives to tensors, for a drawing.
    Raises ModelError, RuleSetError, SettingsError for a waiver that cannot be, SpecError; InternalError when solver and
    direct evaluator disagree.
    """
    stated = None
    if waivers:
        from . import waivers as own

        own.check(waivers, specification())
        stated = own.in_force(waivers, today or date.today())
    asked = question(
        [rules] if isinstance(rules, str) else rules,
        specification(),
        timeout=timeout,
        strict=strict,
        others=others,
        sizes=sizes,
    )
    with paused(), deciding.under_way():
        return _report(asked, model, stated, dump, progress or _silent, witnesses=witnesses, types=types)


def _report(
    asked: Question,
    model: Path | str | Model | ModelProto,
    stated: Stated | None,
    dump: Path | None,
    tell: Progress,
    *,
    witnesses: bool,
    types: bool,
) -> Report:
    """The report on a model, for the question that is asked."""
    loaded = read(model, tell)
    with scheduling.inference(loaded, asked.timeout) as claims:
        facts = structure(loaded, claims.result)
        requirements = scheduling.decide_requirements(asked, loaded, claims, tell)
        if dump is not None:
            text, needed = asked.specification, asked.constraints
            from .queries import dumping

            dumping.dump(dump, loaded, text, asked.rule_sets, needed, facts, requirements, claims.result)
        judged = scheduling.decide_constraints(asked, loaded, facts, claims, tell)
        inferred = claims.result().types if types else {}
    decided = scheduling.Decided(judged, requirements)
    shown = results.evidence(asked, loaded, facts, decided, witnesses=witnesses)
    report = results.report(asked, model, loaded, decided, shown, claims.result, stated)
    return replace(report, types=inferred) if types else report


def read(model: Path | str | Model | ModelProto, tell: Progress = _silent) -> Model:
    """G of a model: a path, an ONNX protobuf, or G itself. Raises ModelError for files that cannot be read."""
    if isinstance(model, Model):
        check_texts(model)
        return model
    if isinstance(model, (str, Path)):
        return load(Path(model), progress=lambda done, total: tell("reading", done, total))
    return load_proto(model)
