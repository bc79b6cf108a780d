"""A text that lacks a condition which theorems need: a named theorem is false there, and a small graph shows it."""

import os
from pathlib import Path

import pytest
from proof_mutations import without_conjunct, without_premise
from proved import THEORY
from sampling import sampled
from sonnx.proofs.gates import suite
from sonnx.proofs.kernel.theory import Theory
from sonnx.proofs.models import picture, standard
from sonnx.proofs.models import search as models
from sonnx.proofs.models.search import Model
from sonnx.spec.library import specification

TEXT = specification()
EXPECTED = Path(__file__).parent / "expect"

PREMISES = [
    ("n in nodes(G)", "FiresAdds"),
    ("enabled(n, M)", "FiresAdds"),
    ("not (exists b in bodies(n): true)", "FiringKinds"),
]
CONDITIONS = [
    ("enabled", "forall t in ins(n): t in dom(M)", "ReadsKept"),
    ("enabled", "forall t in outs(n): not t in dom(M)", "FiresAdds"),
    ("enabled", "exists t in outs(n): true", "FiringUses"),
    ("usable", "covered(P)", "InBounds"),
    ("usable", "bounded(P)", "RegionsInBounds"),
    ("usable", "aligned(P)", "Aligned"),
    ("usable", "disjoint(P)", "PlannedReads"),
    ("covered", "t in placed(P)", "InBounds"),
    ("covered", "bytes(t) <= size(P, t)", "InBounds"),
    ("covered", "begins(P, t) <= s <= ends(P, t)", "PlannedReads"),
    ("bounded", "0 <= offset(P, t)", "RegionsInBounds"),
    ("bounded", "0 <= size(P, t)", "RegionsInBounds"),
    ("bounded", "limit(P, t) <= capacity(P)", "InBounds"),
    ("aligned", "offset(P, t) mod alignment(P) = 0", "Aligned"),
    ("disjoint", "not meet(P, x, y)", "PlannedReads"),
    ("disjoint", "not meet(P, x, y)", "PlansSpare"),
    ("writes_bytes", "spares(B, T, B')", "ValuesLie"),
    ("same_place", "s in owned(T)", "RegionStays"),
    ("same_place", "address(T', s') = address(T, s)", "RegionStays"),
    ("lies", "form(T, s) = layout(v)", "ReadsRight"),
    ("well_made", "written_once(G)", "EndedSolves"),
    ("well_made", "opens(G, I)", "EndedSolves"),
    ("well_made", "forall n in nodes(G): grounded(G, n)", "EndedSolves"),
    ("solves", "lookup(M, t) = lookup(I, t)", "FoldedSolves"),
    ("replaces", "h in nodes(G)", "ReplacedIsWellMade"),
    ("replaces", "forall t in outs(h): exists r in nodes(R): t in outs(r)", "ReplacedSolves"),
    ("joins", "forall r in nodes(R): grounded(R, r)", "ReplacedIsWellMade"),
    ("joins", "forall r in nodes(R), t in outs(r): t in outs(h) or unknown(G, I, t)", "ReplacedIsWellMade"),
    ("unknown", "not t in dom(I)", "ReplacedIsWellMade"),
    ("fills_in", "forall r in nodes(R): answers(r, N)", "KnownKept"),
    ("redirects", "forall n in nodes(G): exists k in nodes(H): original(G, k) = n", "AllGive"),
    ("sends", "forall w in stands(u): w = u or w in outs(h) and secluded(G, I, h, u)", "RedirectedIsWellMade"),
    ("twins", "copies(a)", "TwinsGiveTheSame"),
    ("twins", "single(h)", "TwinsGiveTheSame"),
    ("twins", "forall u in every Tensor: u in ins(a) iff u in ins(h)", "TwinsSend"),
    ("folds", "agree(h, C, I)", "FoldedSolves"),
    ("folds", "forall t in outs(h): allowed(h, t, C, lookup(J, t))", "FoldedSolves"),
    (
        "closed_below",
        "forall n in nodes(G), t in outs(n), m in nodes(G'): t in ins(m) implies n in nodes(G')",
        "PrunedIsWellMade",
    ),
]


def refuting(theory: Theory, name: str) -> Model:
    """A real model in which the theorem is false."""
    found = models.search(standard.question(theory, name, refuted=True), models.SMALL)
    if found is None:
        pytest.fail(f"{name} has no small countermodel")
    return found


def readable(model: Model) -> None:
    """The picture draws every node and memory of the model."""
    lines = picture.listing(model)
    for sort, word in (("Node", "node "), ("Memory", "memory ")):
        assert sum(line.startswith(word) for line in lines) == len(model.universes.get(sort, ()))
    drawn = picture.drawing(model, "a title")
    assert drawn.count("<rect") == len(model.universes.get("Node", ()))
    assert drawn.count("<circle") == len(model.universes.get("Tensor", ()))


@pytest.mark.parametrize(("premise", "name"), sampled(PREMISES, 6))
def test_without_a_premise_of_a_firing_a_theorem_is_false(premise: str, name: str) -> None:
    readable(refuting(without_premise(TEXT, "Step/fire", premise), name))


@pytest.mark.parametrize(("definition", "condition", "name"), sampled(CONDITIONS, 12))
def test_without_a_condition_a_theorem_is_false(definition: str, condition: str, name: str) -> None:
    readable(refuting(without_conjunct(TEXT, definition, condition), name))


def test_the_kernel_refuses_the_theorem_of_a_text_without_a_premise() -> None:
    theory = without_conjunct(TEXT, "enabled", "forall t in ins(n): t in dom(M)")
    refused = suite.prove(theory, ["ReadsKept"])["ReadsKept"].refused
    assert refused is not None
    assert refused.obligation.name == "ReadsKept"


@pytest.mark.parametrize("name", ["FiresAdds", "ReadsKept", "BothOrders", "RegionsInBounds", "Aligned", "InBounds"])
def test_a_theorem_of_the_text_itself_has_no_small_countermodel(name: str) -> None:
    assert models.search(standard.question(THEORY, name, refuted=True), models.SMALL) is None


GOLDEN = [
    ("AllExecutable", ("constraint", "NodeConnected")),
    ("ValuedByNode", ("constraint", "SingleAssignment")),
]


@pytest.mark.parametrize(("name", "dropped"), GOLDEN)
def test_the_picture_of_a_countermodel_is_the_expected_one(name: str, dropped: tuple[str, str]) -> None:
    wanted = standard.question(THEORY, name, dropped, refuted=True)
    model = models.least(wanted)
    if model is None:
        pytest.fail("there is no countermodel")
    drawn = "\n".join((*picture.listing(model), "", picture.drawing(model, f"{name} without {dropped[1]}")))
    path = EXPECTED / f"{name}.txt"
    if os.environ.get("SONNX_UPDATE"):
        path.write_text(drawn, encoding="utf-8")
    assert drawn == path.read_text(encoding="utf-8")
