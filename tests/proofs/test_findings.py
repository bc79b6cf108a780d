"""The findings of part 6: what does not follow, each with the smallest model that shows it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import permutations

import pytest
from command_calls import called
from sampling import left, sampled
from smallest_findings import facts, smallest, smallest_first, uses
from sonnx.proofs.findings import findings, small_graphs
from sonnx.proofs.findings.executions import ASKED
from sonnx.proofs.findings.findings import GRAPHS, Shown
from sonnx.proofs.findings.small_graphs import SmallGraph
from sonnx.proofs.kernel.theory import Theory
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.facts.structure import SetTable, Table, ValueTable
from sonnx.semantics.model.loader.text import from_text
from sonnx.spec.language.parse import parse_expression
from sonnx.spec.library import specification
from tables import table

THEORY = Theory(specification())
STATED = findings.stated(THEORY)


@cache
def shown_findings() -> dict[str, Shown]:
    return {shown.stated.name: shown for shown in findings.findings(THEORY)}


def test_every_finding_has_a_graph_and_is_asked_of_the_machine() -> None:
    assert set(STATED) == set(GRAPHS) == set(ASKED) == set(shown_findings())


@table("name", STATED)
def test_a_finding_stands_on_its_model(name: str) -> None:
    shown = shown_findings()[name]
    assert [asked for asked, so in shown.checks if not so] == []
    assert shown.holds and len(shown.checks) > 3
    assert "NO " not in "\n".join(findings.lines(shown))


@pytest.mark.parametrize("name", [*sampled(sorted({*STATED} - {"DeadNodes"}), 2), left("DeadNodes")])
def test_no_smaller_graph_shows_a_finding(name: str) -> None:
    assert smallest(THEORY, STATED[name]) == GRAPHS[name]


def examined_with(name: str, needs: tuple[str, ...], graph: SmallGraph) -> Shown:
    return findings.examined(THEORY, replace(STATED[name], needs=needs), graph)


@pytest.mark.parametrize(
    ("name", "closing"),
    sampled([
        ("NodesThatNeverRun", "Acyclic"),
        ("DeadNodes", "Contributes"),
        ("FiresForEver", "NodeConnected"),
        ("WrittenInputs", "NoWriteToInput"),
        ("StarvedWriter", "NoWriteToInput"),
        ("CountedByNodes", "SingleAssignment"),
    ], 1),
)  # fmt: skip
def test_the_rule_that_is_missing_closes_the_gap(name: str, closing: str) -> None:
    shown = examined_with(name, (*STATED[name].needs, closing), GRAPHS[name])
    assert not shown.holds, f"the model of the finding breaks {closing}"
    found = replace(STATED[name], needs=(*STATED[name].needs, closing))
    assert smallest(THEORY, found, (2, 2)) is None


def test_a_graph_that_shows_nothing_is_told_apart() -> None:
    harmless = SmallGraph(2, ((0,),), ((1,),), inputs=(0,), outputs=(1,))
    shown = findings.examined(THEORY, STATED["NodesThatNeverRun"], harmless)
    assert not shown.holds and shown.bindings == {}
    assert "NOT SHOWN" in findings.lines(shown)[0]
    assert not findings.examined(THEORY, STATED["NodesThatNeverRun"], None).holds


def sets(table: Table) -> dict[object, tuple[object, ...]]:
    assert isinstance(table, SetTable)
    return {key: tuple(row) for key, row in table.rows.items() if row}


def test_the_facts_of_a_small_graph_are_those_that_the_loader_reads() -> None:
    for graph in smallest_first(2, 2):
        named = range(graph.tensors)
        model = from_text(small_graphs.text(graph).encode())
        read, own = structure(model), facts(graph)
        order = {t: small_graphs.TENSORS.index(it.name) for t, it in enumerate(model.tensors)}
        assert sorted(order.values()) == list(named)
        for fact in ("ins", "outs"):
            shown = {n: tuple(sorted(order[int(str(t))] for t in row)) for n, row in sets(read.table(fact)).items()}
            assert shown == {n: tuple(sorted(map(int, map(str, row)))) for n, row in sets(own[fact]).items()}
        for fact in ("inputs", "outputs"):
            rows = [tuple(sorted(order[int(str(t))] for t in row)) for row in sets(read.table(fact)).values()]
            assert rows == [row for row in (getattr(graph, fact),) if row]
        operators = read.table("schema_determinism")
        assert isinstance(operators, ValueTable) and set(operators.rows.values()) <= {"deterministic"}


def test_every_small_graph_comes_once_and_the_smallest_come_first() -> None:
    found = list(smallest_first(2, 2))
    assert len(set(map(str, found))) == len(found)
    sizes = [(len(graph.reads), graph.tensors, uses(graph)) for graph in found]
    assert sizes == sorted(sizes)
    assert len({canonical(graph) for graph in found}) == len(found)


def canonical(graph: SmallGraph) -> tuple[object, ...]:
    """The same for graphs that differ in names, and for those only."""

    def renamed(row: tuple[int, ...], to: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(to[t] for t in row))

    nodes = tuple(zip(graph.reads, graph.writes, strict=True))
    return min(
        (
            tuple(sorted((renamed(reads, to), renamed(writes, to)) for reads, writes in nodes)),
            renamed(graph.inputs, to),
            renamed(graph.outputs, to),
        )
        for to in permutations(range(graph.tensors))
    )


def test_memories_hold_what_is_given_or_computed_and_nothing_else() -> None:
    graph = GRAPHS["WrittenInputs"]
    world = findings._World.of(facts(graph))
    values = {findings._spelled(term) for memory in world.memories for term in memory.values()}
    assert values == {"given x", "a()", "given y", "b(given x)", "b(a())"}
    assert len(world.memories) == (1 + 2) * (1 + 3)


def test_a_goal_that_does_follow_is_not_refuted() -> None:
    found = replace(STATED["DeadNodes"], goal=parse_expression("exists t in outs(n): used(t) or is_output(t)"))
    assert smallest(THEORY, found, (2, 2)) is None, "that is what NodeConnected says"


def test_the_command_prints_findings_and_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "prove", "--no-gates", "NodesThatNeverRun", "FewerNodes")
    assert code == 0 and "graph a: x -> y; b: z -> z; inputs x; outputs y" in out
    assert out.splitlines()[-1].startswith("1 of 1 lemmas proved") and out.endswith("; 1 of 1 findings shown\n")
    code, _, err = called(capsys, "prove", "NodesThatNeverRuns")
    assert code == 2 and "did you mean NodesThatNeverRun?" in err


def test_a_finding_that_does_not_stand_is_a_failure_of_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "GRAPHS", {**GRAPHS, "DeadNodes": GRAPHS["FiresAgain"]})
    code, out, _ = called(capsys, "prove", "--no-gates", "DeadNodes")
    assert code == 1 and "DeadNodes  NOT SHOWN" in out and "0 of 1 findings shown" in out
