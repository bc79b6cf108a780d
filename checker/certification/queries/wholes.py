"""The rules that are one for all operators as conditions at nodes: declared shapes and types, definitions, sizes that
data decide, and shape inference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sonnx.semantics.facts.inference.model import Claims
from sonnx.semantics.formulas.terms import TRUE, Term
from sonnx.semantics.model.graph import NodeId
from sonnx.semantics.model.path import operator_text
from sonnx.semantics.model.schemas import normal_domain, operator_name, schema_at
from sonnx.semantics.operators.shapes.contents import DECLARED
from sonnx.semantics.operators.shapes.walk import BODIES, Examination, Stated
from sonnx.semantics.operators.symbolic.numbers import Int, at_most, both, either, equal, opposite
from sonnx.spec.library import specification

from ..preconditions import Decisions
from ..requirements import obligations
from .formulas import text_name
from .places import Place


@dataclass(frozen=True, slots=True)
class Whole:
    """A rule with its places. notes: what the header says besides."""

    name: str
    words: str
    places: Sequence[Place]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Named:
    """Symbols with the facts that say what they are, and the constants of texts."""

    facts: list[Term]
    symbols: dict[str, tuple[int, str]]
    texts: dict[str, int]

    def number(self, name: str, value: Int) -> Term:
        """A symbol with its value."""
        self.symbols[name] = (0, "Int")
        self.facts.append(equal(Term(name), value))
        return Term(name)

    def text(self, value: str) -> Term:
        """The constant of a text; different texts are different numbers."""
        name = text_name(value)
        if name not in self.texts:
            self.texts[name] = len(self.texts)
            self.number(name, self.texts[name])
        return Term(name)

    def named(self, name: str, value: str) -> Term:
        """A symbol for a text."""
        self.symbols[name] = (0, "Int")
        self.facts.append(Term("=", (Term(name), self.text(value))))
        return Term(name)

    def place(self, node: NodeId, goal: Term, about: str) -> Place:
        """The condition at a node."""
        return Place(node, goal, tuple(self.facts), self.symbols, about=about)


def _named(examination: Examination) -> _Named:
    return _Named(list(examination.limits), dict(examination.symbols), {})


def shapes(examination: Examination) -> Whole:
    """That outputs have the shapes that the model declares."""
    places = [_shape(stated, examination) for stated in examination.stated if not isinstance(stated.given, str)]
    places += [
        Place(it.node, None, reason=it.reason)
        for it in examination.instances
        if it.position == DECLARED and it.goal is None
    ]
    notes = ("given.axes, given.size.A: what the text gives; declared.axes, declared.size.A: what the model declares",)
    words = "Outputs have the shapes that the model declares."
    return Whole("shapes", words, sorted(places, key=lambda place: place.node), notes)


def _shape(stated: Stated, examination: Examination) -> Place:
    given, declared = stated.given, stated.declared
    if isinstance(given, str) or isinstance(declared, str):
        raise TypeError("sizes were expected")
    pairs = [(ours, size) for ours, size in zip(given, declared, strict=False) if size is not None]
    parts = [equal(ours, size) for ours, size in pairs]
    own = next(
        (
            it
            for it in examination.instances
            if it.position == DECLARED and (it.node, it.tensor) == (stated.node, stated.tensor) and it.goal is not None
            if len(given) != len(declared) or it.goal == both(*parts)
        ),
        None,
    )
    named = _named(examination)
    path: tuple[Term, ...] = ()
    if own is not None:
        named.facts += own.facts
        named.symbols.update(own.symbols)
        path = tuple(map(opposite, own.path))
    goals = [equal(named.number("given.axes", len(given)), named.number("declared.axes", len(declared)))]
    for axis, (ours, size) in enumerate(zip(given, declared, strict=False)):
        if size is not None:
            goals.append(equal(named.number(f"given.size.{axis}", ours), named.number(f"declared.size.{axis}", size)))
    about = f"tensor {examination.model.tensors[stated.tensor].path}"
    return named.place(stated.node, either(*path, both(*goals)), about)


def types(examination: Examination) -> Whole:
    """That outputs have the element types that the model declares."""
    places = []
    for stated in examination.stated:
        if isinstance(stated.given, str) and isinstance(stated.declared, str):
            named = _named(examination)
            given, declared = (
                named.named(f"{whose}.type", kind)
                for whose, kind in (("given", stated.given), ("declared", stated.declared))
            )
            about = f"tensor {examination.model.tensors[stated.tensor].path}"
            places.append(named.place(stated.node, equal(given, declared), about))
    words = "Outputs have the element types that the model declares."
    notes = ("Types are texts, each another number. given.type: what the text gives; declared.type: what is declared",)
    return Whole("types", words, sorted(places, key=lambda place: place.node), notes)


def defined(examination: Examination) -> Whole:
    """That every node applies an operator that the specification defines, and can run."""
    places = [place for n in range(len(examination.model.nodes)) for place in _defined(n, examination)]
    notes = (
        "version: of the node's operator; definition.K.first, .last: the versions that its definition K is for",
        "NAME.kind: of the node's attribute; NAME.read: what the operator reads",
        "sat, or not asked: the specification does not say what the node needs, and the rule is open",
    )
    words = "Every node applies an operator that the specification defines, and can run."
    return Whole("defined", words, places, notes)


def _defined(n: NodeId, examination: Examination) -> Iterator[Place]:
    node = examination.model.nodes[n]
    if n in examination.skipped:
        yield Place(n, None, reason="the node never runs, since what it reads is never written")
        return
    name = operator_name(node.domain, node.op_type)
    definitions = specification().operators.get(name, ())
    said = [d for d in definitions if name in BODIES or all(s.kind != "rule" for s in d.statements)]
    if node.version is None or not said or (name in BODIES and not node.bodies):
        operator = operator_text(normal_domain(node.domain), node.op_type)
        yield Place(n, None, reason=f"the specification has no text for {operator} of this node")
        return
    named = _named(examination)
    version = named.number("version", node.version)
    limits = [
        (named.number(f"definition.{k}.first", d.first), named.number(f"definition.{k}.last", d.last))
        for k, d in enumerate(said)
    ]
    cases = [both(at_most(first, version), at_most(version, last)) for first, last in limits]
    known = schema_at(node)
    kinds = [
        equal(named.named(f"|{name}.kind|", attribute.kind), named.named(f"|{name}.read|", formal.kind))
        for name, attribute in node.attributes.items()
        if known is not None and (formal := known.attributes.get(name)) is not None
    ]
    yield named.place(n, both(either(*cases), *kinds), f"{node.op_type}-{node.version}")


def made(decisions: Decisions, kind: str | None) -> Whole:
    """The obligations on shapes that data decide, for the nodes behind."""
    examination = decisions.examination
    places = []
    for (maker, condition), needing in obligations(kind or "", decisions).items():
        about = "needed by " + ", ".join(
            dict.fromkeys(examination.model.nodes[it.instance.node].path for it in needing)
        )
        first = needing[0]
        if condition is None or condition == TRUE:
            places.append(Place(maker, None, reason=first.reason, about=about))
        else:
            symbols = {**examination.symbols, **first.instance.symbols}
            places.append(Place(maker, condition, first.instance.facts, symbols, about=about))
    notes = ("sat: data decide it, and the condition is an obligation on the node",)
    words = "A shape that data decide is one for which the nodes behind have a result."
    return Whole("data-shapes", words, sorted(places, key=lambda place: place.node), notes)


def inference(examination: Examination, claims: Claims) -> Whole:
    """That ONNX's shape inference gives the shapes that the texts give."""
    writers = {t: n for n, node in enumerate(examination.model.nodes) for t in node.outputs if t is not None}
    places = []
    for t, content in sorted(examination.contents.items()):
        claim = claims.types.get(t)
        if content.shape is None or claim is None or claim.kind != "tensor" or claim.shape is None or t not in writers:
            continue
        named = _named(examination)
        goals = [equal(named.number("given.axes", len(content.shape)), named.number("inferred.axes", len(claim.shape)))]
        for axis, (ours, theirs) in enumerate(zip(content.shape, claim.shape, strict=False)):
            if isinstance(ours, int) and isinstance(theirs, int):
                one, other = named.number(f"given.size.{axis}", ours), named.number(f"inferred.size.{axis}", theirs)
                goals.append(equal(one, other))
        places.append(named.place(writers[t], both(*goals), f"tensor {examination.model.tensors[t].path}"))
    notes = (
        "given.axes, given.size.A: what the text gives; inferred.axes, inferred.size.A: what ONNX's inference gives,",
        "where both are numbers. A difference is reported and not counted",
    )
    words = "ONNX's shape inference gives the shapes that the texts of the operators give."
    return Whole("inference", words, sorted(places, key=lambda place: place.node), notes)
