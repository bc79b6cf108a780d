"""Findings: the instances at which a constraint fails, as places, sentences and re-checkable witnesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonnx.semantics.facts.structure import Element, SetTable, Structure, Unknown
from sonnx.semantics.formulas import evaluate as direct
from sonnx.spec.language.syntax import BOOL, INT, TEXT, Clause, Constraint, Expr, FunctionDeclaration, Sort
from sonnx.spec.terminal import inert

from .report import Box, Finding, Json, Neighbourhood

# ---- The graph around a finding -----------------------------------------------------------------


WIDTH = 6
"""The most neighbours of one box that are drawn; the rest is one box `... n more`."""

NODE, TENSOR = Sort("Node"), Sort("Tensor")

Key = tuple[str, Element]


def around(instance: direct.Instance, structure: Structure) -> Neighbourhood | None:
    """The neighbourhood of the nodes and tensors that an instance binds; None when it binds none."""
    focus = [(sort.name, element) for _, sort, element in instance.bindings if sort in (NODE, TENSOR)]
    if not focus:
        return None
    picture = _Picture(structure)
    for kind, element in focus:
        picture.add(kind, element, focus=True)
    for key in list(picture.order):
        picture.expand(key)
    tensors = [key for key in picture.order if key[0] == "Tensor"]
    for key in tensors:
        picture.expand(key)
    return Neighbourhood(tuple(picture.boxes), tuple(dict.fromkeys(picture.arrows)))


class _Picture:
    """The boxes and arrows gathered so far."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        self.order: dict[Key, int] = {}
        self.boxes: list[Box] = []
        self.arrows: list[tuple[int, int]] = []
        self._expanded: set[Key] = set()

    def add(self, kind: str, element: Element, *, focus: bool = False) -> int:
        key = (kind, element)
        if key not in self.order:
            self.order[key] = len(self.boxes)
            self.boxes.append(self._box(kind, element, focus))
        return self.order[key]

    def _box(self, kind: str, element: Element, focus: bool) -> Box:
        path = self._structure.place(Sort(kind), element)
        last = path.rsplit('/"', 1)[-1] if kind == "Tensor" else path.rsplit("/", 1)[-1]
        return Box(kind.lower(), last.rstrip('"') if kind == "Tensor" else _node_label(path), path, focus)

    def expand(self, key: Key) -> None:
        """Draw the direct neighbours of a box."""
        if key in self._expanded:
            return
        self._expanded.add(key)
        kind, element = key
        here = self.order[key]
        before, after = ("ins", "outs") if kind == "Node" else ("producers", "consumers")
        other = "Tensor" if kind == "Node" else "Node"
        for there in self._some(before, other, element):
            self.arrows.append((there, here))
        for there in self._some(after, other, element):
            self.arrows.append((here, there))

    def _some(self, fact: str, kind: str, element: Element) -> Iterator[int]:
        table = self._structure.table(fact)
        members = table.rows.get(element, ()) if isinstance(table, SetTable) else ()
        for member in members[:WIDTH]:
            yield self.add(kind, member)
        if len(members) > WIDTH:
            self.boxes.append(Box("more", f"... {len(members) - WIDTH} more", ""))
            yield len(self.boxes) - 1


def _node_label(path: str) -> str:
    """`3:Conv` of `/3:Conv("name")`: the text behind the last graph separator outside quotes."""
    return "".join(path.split('"')[0::2]).replace("()", "").rsplit("/", 1)[-1]


# ---- Findings -----------------------------------------------------------------------------------


LISTED = 5
"""The most members of a set that a sentence names."""
PRECEDENCE = ("Node", "Function", "Tensor", "Graph")
"""Of the variables of an instance, the place of the finding is the first one of the first of these sorts."""

Functions = Mapping[str, FunctionDeclaration]


def finding(
    constraint: Constraint,
    instance: direct.Instance,
    functions: Functions,
    structure: Structure,
    *,
    violated: bool,
    drawn: bool = True,
) -> Finding:
    """The finding for one instance of a constraint that is violated there, or whose truth is unknown there. drawn: with
    the graph around it."""
    sorts = {name: sort for name, sort, _ in instance.bindings}
    values = {name: element for name, _, element in instance.bindings}
    witness: dict[str, Json] = {
        name.lstrip("_"): _json(structure, sort, element) for name, sort, element in instance.bindings
    }
    where = _place(instance, structure)
    if not violated:
        return Finding(where, inert(instance.reason), witness)
    sentences = {
        item.key: _fill(item, values, sorts, functions, structure)
        for item in constraint.clauses
        if item.key in ("violation", "suggest")
    }
    message = sentences.get("violation", "the constraint does not hold here")
    return Finding(
        where, message, witness, sentences.get("suggest", ""), around(instance, structure) if drawn else None
    )


def data_condition(words: str, instance: direct.Instance, functions: Functions, structure: Structure) -> str:
    """The condition on data at an instance at which a constraint is open, as the definition `words` says; empty where
    data do not decide it, or it is open whether they do."""
    arguments = tuple(Expr("var", (name,)) for name, _, _ in instance.bindings)
    values = {name: element for name, _, element in instance.bindings}
    sorts = {name: sort for name, sort, _ in instance.bindings}
    sentence = direct.evaluate(Expr("call", (words, *arguments)), values, functions, structure, sorts)
    return sentence if isinstance(sentence, str) else ""


def obligation(instance: direct.Instance, condition: str, structure: Structure) -> Finding:
    """The finding for an instance that data decide."""
    where = _place(instance, structure)
    witness = {name.lstrip("_"): _json(structure, sort, element) for name, sort, element in instance.bindings}
    return Finding(
        where,
        f"data decide it; needed: {inert(condition)}",
        witness,
        f"See to it that the data of every run keep to it, or change {where}.",
        condition=inert(condition),
    )


def _place(instance: direct.Instance, structure: Structure) -> str:
    for wanted in PRECEDENCE:
        for _, sort, element in instance.bindings:
            if sort.name == wanted:
                return structure.place(sort, element)
    return "/"


def _json(structure: Structure, sort: Sort, element: Element) -> Json:
    return element if sort in (BOOL, INT, TEXT) else structure.place(sort, element)


def _fill(
    template: Clause,
    values: Mapping[str, Element],
    sorts: Mapping[str, Sort],
    functions: Functions,
    structure: Structure,
) -> str:
    """The sentence of a template, its expressions replaced by what they denote at this instance."""
    out = []
    for part in template.parts:
        if isinstance(part, str):
            out.append(part)
        else:
            value = direct.evaluate(part, values, functions, structure, sorts)
            out.append(_show(value, _sort(part, sorts, functions), structure))
    return " ".join("".join(out).split())


def _sort(expr: Expr, sorts: Mapping[str, Sort], functions: Functions) -> Sort:
    """The sort of a template's expression: a variable, an application, or else a number."""
    match expr:
        case Expr(head="var", args=(str() as name,)):
            return sorts.get(name, INT)
        case Expr(head="call", args=(str() as name, *_)) if name in functions:
            return functions[name].result
        case Expr(head="index", args=(Expr() as inner, *_)):
            return _sort(inner, sorts, functions).element or INT
        case _:
            return INT


def _show(value: object, sort: Sort, structure: Structure) -> str:
    if isinstance(value, Unknown):
        return f"unknown ({value.reason})"
    if sort.element is not None and isinstance(value, (tuple, frozenset)):
        members = sorted(value) if isinstance(value, frozenset) else list(value)
        shown = [_show(member, sort.element, structure) for member in members[:LISTED]]
        more = [f"and {len(members) - LISTED} more"] if len(members) > LISTED else []
        listed = ", ".join(shown + more) or "none"
        return f"[{listed}]" if sort.name == "list" else listed
    if sort.element is None and sort not in (BOOL, INT, TEXT) and isinstance(value, (int, str)):
        return structure.place(sort, value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return inert(str(value))
