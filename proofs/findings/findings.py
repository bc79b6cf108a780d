"""The findings of part 6: what does not follow, each with the smallest graph that shows it, and whether that is so.

The graph of a finding is recorded here; a test seeks it among all graphs, the smallest first. Inductive predicates are
computed on the graph, so they are really the least ones. Memories range over all that hold given values or what nodes
compute from the values of others, values being terms of which nothing is known but how they came about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from sonnx.checker.certification.deciding import Task, judge_constraints
from sonnx.semantics.facts.gathering import structure as structure_of
from sonnx.semantics.facts.structure import Element, Key, SetTable, Structure, Table, ValueTable
from sonnx.semantics.formulas.evaluate import evaluate, judge
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader.text import from_text
from sonnx.spec.language.printer import print_expression
from sonnx.spec.language.syntax import Expr, FunctionDeclaration, Parameter, Property

from ..kernel.theory import Theory
from .executions import executed
from .small_graphs import NODES, TENSORS, SmallGraph, structure, text

Functions = Mapping[str, FunctionDeclaration]
Bindings = Mapping[str, Element]
MEMORY: Final = ("dom", "lookup", "gives")
"""The functions of part 3 that are read off memories, which are data here."""

GRAPHS: Mapping[str, SmallGraph] = {
    "NodesThatNeverRun": SmallGraph(3, ((0,), (2,)), ((1,), (2,)), inputs=(0,), outputs=(1,)),
    "DeadNodes": SmallGraph(3, ((0,), (1, 2)), ((1,), (2,)), inputs=(0,), outputs=()),
    "FiresAgain": SmallGraph(1, ((),), ((0,),), inputs=(), outputs=(0,)),
    "FiresForEver": SmallGraph(1, ((0,),), ((),), inputs=(0,), outputs=()),
    "WrittenInputs": SmallGraph(2, ((), (0,)), ((0,), (1,)), inputs=(0,), outputs=(1,)),
    "StarvedWriter": SmallGraph(3, ((0,),), ((1, 2),), inputs=(0, 1), outputs=(1, 2)),
    "CountedByNodes": SmallGraph(2, ((0,),), ((1, 1),), inputs=(0,), outputs=(1,)),
}
"""For each finding its smallest graph."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The outcome of a finding. graph, bindings: the countermodel, elements and memories by parameter, as text.

    checks: what was asked about it and whether it is so: the constraints, by the direct evaluator and by the solver as
    `sonnx certify` asks it; premises and goal; what the machine does with the model.
    """

    stated: Property
    graph: SmallGraph | None
    bindings: Mapping[str, str]
    checks: tuple[tuple[str, bool], ...]

    @property
    def holds(self) -> bool:
        """The finding stands: there is a graph, and all that was asked of it is so."""
        return self.graph is not None and all(so for _, so in self.checks)


def stated(theory: Theory) -> dict[str, Property]:
    """The findings of part 6 by name, in its order."""
    return {name: declared for name, declared in theory.text.properties.items() if declared.kind == "finding"}


def findings(theory: Theory, names: Collection[str] | None = None) -> tuple[Shown, ...]:
    """Every finding of part 6, or those of these names, examined on the model that its recorded graph is."""
    chosen = [finding for name, finding in stated(theory).items() if names is None or name in names]
    return tuple(examined(theory, finding, GRAPHS.get(finding.name)) for finding in chosen)


def lines(shown: Shown) -> list[str]:
    """A finding for people: what does not follow, the graph, what is what there, and what was asked of it."""
    finding, word = shown.stated, "shown" if shown.holds else "NOT SHOWN"
    told = [f"{finding.name}  {word}", f"  {finding.doc}"]
    if shown.graph is None:
        return [*told, "  no graph is recorded in proofs/findings/findings.py"]
    told.append(f"  kept: {', '.join(finding.needs)}")
    told.append(f"  graph {shown.graph}")
    where = ", ".join(f"{name} = {value}" for name, value in shown.bindings.items())
    told.append(f"  there {where or 'are no parameters'}; and not: {print_expression(finding.goal)}")
    return [*told, *(f"  {'yes' if so else 'NO '}  {asked}" for asked, so in shown.checks)]


def as_json(shown: Shown) -> dict[str, object]:
    """A finding as data."""
    return {
        "name": shown.stated.name,
        "kind": "finding",
        "sentence": shown.stated.doc,
        "verdict": "shown" if shown.holds else "not shown",
        "constraints": list(shown.stated.needs),
        "graph": None if shown.graph is None else str(shown.graph),
        "model": None if shown.graph is None else text(shown.graph),
        "values": dict(shown.bindings),
        "checks": [{"asked": asked, "so": so} for asked, so in shown.checks],
    }


# ---- Refutations ----------------------------------------------------------------------------


def _functions(theory: Theory) -> Functions:
    """The functions of the text; what is read off memories is data."""
    functions = dict(theory.text.functions)
    return functions | {name: replace(functions[name], kind="fact") for name in MEMORY}


def _kept(theory: Theory, finding: Property, functions: Functions, data: Structure) -> bool:
    """The constraints that a finding names hold."""
    constraints = theory.text.constraints
    return all(judge(constraints[name], functions, data, limit=1).verdict == "holds" for name in finding.needs)


def refutation(finding: Property, functions: Functions, tables: Mapping[str, Table]) -> Bindings | None:
    """Values of the parameters for which the premises hold and the goal does not, memories among them; None: none."""
    world = _World.of(tables) if any(p.sort.name == "Memory" for p in finding.parameters) else None
    data = structure({**tables, **({} if world is None else world.tables())})
    domains = [_elements(parameter, tables, world) for parameter in finding.parameters]
    premises = [premise.expr for premise in finding.premises]
    return next(_instances(finding, functions, data, domains, premises), None)


def _instances(
    finding: Property, functions: Functions, data: Structure, domains: Sequence[Sequence[Element]], premises: list[Expr]
) -> Iterator[Bindings]:
    """The refutations, with each premise asked as soon as its variables have values."""
    names = [parameter.name for parameter in finding.parameters]
    asked: list[list[Expr]] = [[] for _ in range(len(names) + 1)]
    for premise in premises:
        free = _names(premise)
        asked[max((at + 1 for at, name in enumerate(names) if name in free), default=0)].append(premise)

    def down(at: int, env: dict[str, Element]) -> Iterator[Bindings]:
        if not all(evaluate(premise, env, functions, data) is True for premise in asked[at]):
            return
        if at == len(names):
            if evaluate(finding.goal, env, functions, data) is False:
                yield dict(env)
            return
        for element in domains[at]:
            yield from down(at + 1, {**env, names[at]: element})

    yield from down(0, {})


def _names(expr: Expr) -> set[str]:
    own = {str(expr.args[0])} if expr.head == "var" else set()
    return own.union(*(_names(child) for child in expr.children()))


def _elements(parameter: Parameter, tables: Mapping[str, Table], world: _World | None) -> Sequence[Element]:
    fact = {"Node": "all_nodes", "Tensor": "all_tensors", "Graph": "graphs"}.get(parameter.sort.name)
    if fact is None:
        return () if world is None else range(len(world.memories))
    return _row(tables, fact, ())


# ---- Memories ---------------------------------------------------------------------------------

Term = tuple[object, ...]
"""A value: given to a tensor, or computed by a node for a tensor from values of what it reads."""


@dataclass(frozen=True, slots=True)
class _World:
    """All memories of a graph: for each which value its tensors have."""

    tables_of_graph: Mapping[str, Table]
    memories: tuple[Mapping[Element, Term], ...]

    @staticmethod
    def of(tables: Mapping[str, Table]) -> _World:
        """The memories whose values are given, or computed in so many steps as there are nodes."""
        tensors, nodes = _row(tables, "all_tensors", ()), _row(tables, "all_nodes", ())
        known: dict[Element, dict[Term, None]] = {t: {("given", t): None} for t in tensors}
        for _ in nodes:
            for n in nodes:
                reads = _row(tables, "ins", n)
                for values in product(*(known[t] for t in reads)):
                    for t in _row(tables, "outs", n):
                        known[t][_computed(n, t, values)] = None
        chosen = product(*((None, *known[t]) for t in tensors))
        memories = [{t: v for t, v in zip(tensors, values, strict=True) if v is not None} for values in chosen]
        return _World(tables, tuple(sorted(memories, key=len)))

    def tables(self) -> dict[str, Table]:
        """The tables that are read off the memories, each of which is a number."""
        numbers: dict[Term, int] = {}

        def number(term: Term) -> int:
            return numbers.setdefault(term, len(numbers))

        dom: dict[Key, tuple[Element, ...]] = {}
        lookup: dict[Key, int] = {}
        gives: dict[Key, tuple[Element, ...]] = {}
        place = {frozenset(memory.items()): at for at, memory in enumerate(self.memories)}
        for at, memory in enumerate(self.memories):
            dom[at] = tuple(memory)
            for t, term in memory.items():
                lookup[at, t] = number(term)
            for n in _row(self.tables_of_graph, "all_nodes", ()):
                reads = _row(self.tables_of_graph, "ins", n)
                if all(t in memory for t in reads):
                    values = tuple(memory[u] for u in reads)
                    made = {(t, _computed(n, t, values)) for t in _row(self.tables_of_graph, "outs", n)}
                    gives[n, at] = (place[frozenset(made)],) if frozenset(made) in place else ()
        return {"dom": SetTable(dom), "lookup": ValueTable({**lookup}), "gives": SetTable(gives)}


def _computed(n: Element, t: Element, values: tuple[Term, ...]) -> Term:
    return ("computed", n, t, values)


def _row(tables: Mapping[str, Table], fact: str, key: Key) -> tuple[Element, ...]:
    table = tables[fact]
    return table.rows.get(key, ()) if isinstance(table, SetTable) else ()


def _spelled(term: Term) -> str:
    """A value as people read it: given x, or a(given x)."""
    kind, first, *rest = term
    if kind == "given":
        return f"given {TENSORS[int(str(first))]}"
    (values,) = rest[1:]
    inner = ", ".join(_spelled(value) for value in values) if isinstance(values, tuple) else ""
    return f"{NODES[int(str(first))]}({inner})"


# ---- Examination ------------------------------------------------------------------------------


def examined(theory: Theory, finding: Property, graph: SmallGraph | None) -> Shown:
    """The finding on the model that a graph is: its facts as the loader reads them, not those of the search."""
    if graph is None:
        return Shown(finding, None, {}, ())
    model = from_text(text(graph).encode())
    data = structure_of(model)
    functions, constraints = _functions(theory), [theory.text.constraints[name] for name in finding.needs]
    kept = _kept(theory, finding, functions, data)
    solved = judge_constraints(Task(constraints, theory.text.functions, data, timeout=10.0), lambda *_: None)
    tables = {name: data.table(name) for name in data.facts()}
    bindings = refutation(finding, functions, tables)
    checks = [
        ("the constraints hold, says the direct evaluator", kept),
        ("the constraints hold, says the solver", all(str(it.verdict) == "holds" for it in solved.values())),
        ("the premises hold and the goal does not", bindings is not None),
    ]
    if bindings is not None:
        checks += executed(finding.name, model, bindings)
    where = {} if bindings is None else _places(finding, model, graph, tables, bindings)
    return Shown(finding, graph, where, tuple(checks))


def _places(
    finding: Property, model: Model, graph: SmallGraph, tables: Mapping[str, Table], bindings: Bindings
) -> dict[str, str]:
    """The values of the parameters as people read them, with the names of `graph`."""
    names = {t: it.name for t, it in enumerate(model.tensors) if it.name in TENSORS[: graph.tensors]}
    world = _World.of(tables)
    shown = {}
    for parameter in finding.parameters:
        value = int(bindings[parameter.name])
        match parameter.sort.name:
            case "Memory":
                rows = ((names[int(t)], _spelled(_renamed(term, names))) for t, term in world.memories[value].items())
                shown[parameter.name] = "{" + ", ".join(f"{t}: {term}" for t, term in sorted(rows)) + "}"
            case "Tensor":
                shown[parameter.name] = names[value]
            case _:
                shown[parameter.name] = NODES[value]
    return shown


def _renamed(term: Term, names: Mapping[int, str]) -> Term:
    """The value with the tensors numbered as in the small graph, not as in the model."""
    kind, first, *rest = term
    if kind == "given":
        return ("given", TENSORS.index(names[int(str(first))]))
    t, values = rest
    inner = tuple(_renamed(value, names) for value in values) if isinstance(values, tuple) else ()
    return ("computed", first, t, inner)
