"""Laws about facts hold on real facts: of small graphs, of the shipped examples and of the shared models."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from small_graphs import sampled, structure, up_to_renaming, with_features
from sonnx.checker.certification.examples import examples
from sonnx.semantics.facts.gathering import structure as facts_of_model
from sonnx.semantics.facts.structure import Structure
from sonnx.semantics.formulas.evaluate import judge
from sonnx.semantics.model.loader import load
from sonnx.semantics.model.loader.text import from_text
from sonnx.spec.language.syntax import Binder, Constraint, Expr, Property
from sonnx.spec.library import specification
from tables import table

TEXT = specification()
SHARED = Path(__file__).parents[2] / ".." / "shared" / "models"
DOMAINS = {"Node": "all_nodes", "Tensor": "all_tensors", "Graph": "graphs"}


EXPANDED = frozenset({"is_call"})
"""What holds of no node of a model that is read: functions are expanded."""


def functions_of(expr: Expr | None) -> Iterator[str]:
    if expr is None:
        return
    if expr.head == "call":
        name = str(expr.args[0])
        yield name
        if TEXT.functions[name].kind == "define":
            yield from functions_of(TEXT.functions[name].body)
    for child in expr.children():
        yield from functions_of(child)


def about_facts(law: Property) -> bool:
    """Whether the law speaks of facts and of definitions over them only."""
    called = {name for part in (law.goal, *(it.expr for it in law.premises)) for name in functions_of(part)}
    return all(parameter.sort.name in DOMAINS for parameter in law.parameters) and all(
        TEXT.functions[name].kind in ("fact", "define") for name in called - EXPANDED
    )


def ranging(expr: Expr) -> Expr:
    """The formula, `every Node` and the like read as what the model has."""
    if expr.head == "every":
        return Expr("call", (DOMAINS[str(expr.args[0])],), expr.span)
    if expr.head == "call" and expr.args[0] in EXPANDED:
        return Expr("false", (), expr.span)
    parts = []
    for part in expr.args:
        if isinstance(part, Binder):
            parts.append(replace(part, domain=ranging(part.domain)))
        else:
            parts.append(ranging(part) if isinstance(part, Expr) else part)
    return replace(expr, args=tuple(parts))


def constraint(law: Property) -> Constraint:
    """The law as a constraint: its parameters range over what the model has."""
    formula = law.goal
    for premise in reversed(law.premises):
        formula = Expr("implies", (premise.expr, formula), law.span)
    for parameter in reversed(law.parameters):
        domain = Expr("call", (DOMAINS[parameter.sort.name],), law.span)
        formula = Expr("forall", (Binder(parameter.name, domain), formula), law.span)
    return Constraint(law.name, law.doc, "static", ranging(formula))


LAWS = {law.name: constraint(law) for law in TEXT.properties.values() if law.kind == "law" and about_facts(law)}
"""The laws that can be judged on facts."""


@cache
def generated() -> tuple[Structure, ...]:
    graphs = (*islice(up_to_renaming(1, 2), 200), *sampled(150, 7, 3, 4))
    return tuple(structure(with_features(graph, number)) for number, graph in enumerate(graphs))


@cache
def shipped() -> dict[str, Structure]:
    return {it.name: facts_of_model(from_text(it.text.encode())) for it in examples()}


@cache
def shared(step: int) -> dict[str, Structure]:
    folders = ("control-flow", "recurrent", "sonnx-examples", "safety")
    names = [path for folder in folders for path in sorted((SHARED / folder).rglob("*.onnx"))]
    small = [path for path in names if path.stat().st_size < 1_000_000]
    return {str(path.relative_to(SHARED)): facts_of_model(load(path.resolve())) for path in small[:120:step]}


def refuted(name: str, structures: dict[str, Structure]) -> list[str]:
    """The models in which a law is false or unknown."""
    return [where for where, found in structures.items() if judge(LAWS[name], TEXT.functions, found).verdict != "holds"]


def test_laws_about_facts_are_found() -> None:
    assert set(LAWS) == {
        "Consumers", "Producers", "Writers", "Everything", "OwnNodes", "OwnGraphs", "OwnOutputs", "OwnTensors",
        "HasBodies", "MainOutputs", "OutputsAt", "InputsAt", "FormalInputs", "Captured", "Held",
    }  # fmt: skip


@table("name", LAWS)
def test_the_law_holds_on_small_graphs(name: str) -> None:
    assert refuted(name, {str(number): found for number, found in enumerate(generated())}) == []


@table("name", LAWS)
def test_the_law_holds_on_the_shipped_examples(name: str) -> None:
    assert refuted(name, shipped()) == []


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared models are not at ../shared/models")
@pytest.mark.parametrize("step", [pytest.param(8, id="sample"), pytest.param(1, id="all", marks=pytest.mark.campaign)])
@pytest.mark.parametrize("name", LAWS)
def test_the_law_holds_on_the_shared_models(name: str, step: int) -> None:
    """On every eighth model; on all in the campaign."""
    assert len(shared(step)) > 5
    assert refuted(name, shared(step)) == []


def test_a_false_law_is_refuted() -> None:
    law = TEXT.properties["Consumers"]
    wrong = constraint(law)
    swapped = Expr("not", (wrong.formula,), law.span)
    assert judge(Constraint("Wrong", "", "static", swapped), TEXT.functions, generated()[-1]).verdict == "violated"
