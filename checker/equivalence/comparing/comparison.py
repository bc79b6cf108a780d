"""The comparison of two models, from loading them to a verdict.

A verdict that they are equal rests on three things. Every pair of outputs is one value of the table, in normal forms of
a strength. The applications that may get stuck are the same on both sides, so that one model runs where the other does:
by induction along a run, their arguments have come about with the same values. And both are well formed, so that a run
does what its nodes say. What is claimed of A and B holds for the inputs that both accept.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.execution import check_complete, check_well_formed
from sonnx.semantics.machine.inputs import type_text
from sonnx.semantics.machine.report import why
from sonnx.semantics.model.elements import FLOATS
from sonnx.semantics.model.graph import Model, TensorId
from sonnx.semantics.model.loader import load
from sonnx.semantics.model.schemas import reached
from sonnx.semantics.model.values import Value
from sonnx.semantics.operators.shapes.contents import Content
from sonnx.semantics.operators.symbolic.numbers import Int
from sonnx.spec.elaborate.core import Core

from .entering import Entered, enter, stored_array
from .facts import Facts
from .interface import Interface, Port, interface
from .islands import Shown, prove_islands
from .normalizing import OF_THE_TABLE, Firing, Normalizer, Rules, Strength, no_rules
from .rewriting import Trusted, near, proved_rules, rules_of
from .searching import Box, Hull, Search, Witness, box_of, hull, search
from .table import ApplicationId, Table, ValueId
from .unifying import Differences, Island, Pair, arguments, common, cone, unify

SECONDS: Final = 10.0
"""The time that is given to the search by default."""


class Verdict(Enum):
    """The outcome in one word."""

    EQUAL = "equal"
    ALLOWED = "allowed"
    REALS = "reals"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


PROVED: Final = {Strength.EXACT: Verdict.EQUAL, Strength.ALLOWED: Verdict.ALLOWED, Strength.REALS: Verdict.REALS}
SENTENCES: Final = {
    Verdict.EQUAL: "equal bits for all inputs that both accept",
    Verdict.ALLOWED: "for all inputs that both accept, what B gives is a result that the definition of A allows",
    Verdict.REALS: "equal over the reals for all inputs that both accept, wherever all that both compute has a value"
    " there (no division by 0, no root or logarithm that there is not), but for rounding: that of runs, and that of"
    " stored tensors which were evaluated",
    Verdict.DIFFERS: "they differ on an input",
    Verdict.UNKNOWN: "it is not known",
}


@dataclass(frozen=True, slots=True)
class Sides:
    """The two models in one table. pairs: values that are to be equal. unmatched: applications that may get stuck, of A
    and of B alone. rounded: pairs of applications to stored tensors, one of each model, that are one value only since a
    rule over the reals had them evaluated. islands: places where they part, and which are proved on their own; open_:
    why that is not so of all of them."""

    table: Table
    a: Entered
    b: Entered
    pairs: tuple[tuple[str, Pair], ...]
    unmatched: tuple[frozenset[ApplicationId], frozenset[ApplicationId]]
    facts: Facts
    firings: Mapping[ApplicationId, Firing]
    strength: Strength
    declared: tuple[str, ...] = ()
    rounded: tuple[tuple[ApplicationId, ApplicationId], ...] = ()
    islands: tuple[Shown, ...] = ()
    open_: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome of a comparison.

    proved: how strongly they are shown to be equal, None where they are not. demanded: how strongly they are to be.
    sides: the normal forms of the weakest strength that was tried. differences: where they part; none once proved.
    decisions: places that turn rounding into another decision. search: None where none was needed. bounds: for each
    output how far the models can be apart on the given input, or on any in the box, which `box` says in words; why that
    is not known. apart: why the interfaces cannot be compared. near: of islands the rewrite by which one side would be
    the other one, and why it is not.
    """

    models: tuple[Model, Model]
    ports: Interface
    verdict: Verdict
    demanded: Strength
    proved: Strength | None
    sides: Sides
    differences: Differences
    decisions: tuple[ApplicationId, ...] = ()
    search: Search | None = None
    bounds: Mapping[str, Hull] | str | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    given: Mapping[str, Value] = field(default_factory=dict, repr=False)
    box: str = ""
    near: Mapping[Pair, tuple[str, str]] = field(default_factory=dict)

    @property
    def witness(self) -> Witness | None:
        """The input on which they differ."""
        return None if self.search is None else self.search.witness

    @property
    def settled(self) -> bool:
        """True if they are shown to be equal as strongly as was demanded."""
        return self.proved is not None and self.proved <= self.demanded

    @property
    def code(self) -> int:
        """The exit code: 0 equal at the strength that was demanded, 1 different, 3 not known."""
        if self.settled:
            return 0
        return 1 if self.verdict is Verdict.DIFFERS or (self.proved is not None and self.witness is not None) else 3


def compare(
    a: Model | Path | str,
    b: Model | Path | str,
    *,
    strength: Strength = Strength.EXACT,
    rules: Trusted | None = None,
    inputs: Mapping[str, Value] = MappingProxyType({}),
    sizes: Mapping[str, int] = MappingProxyType({}),
    box: Mapping[str, tuple[float, float]] = MappingProxyType({}),
    seconds: float = SECONDS,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Compares two models: are they equal for all inputs, how strongly, and if not, on which input do they differ?

    strength: how strongly they are to be equal. rules: that may rewrite them, those of part 7 that are proved on record
    where nothing is said. inputs: of A by name, that the search does not draw and for which bounds are told. sizes: of
    open dimensions in the search, of at most `seconds`, and in the box. box: intervals for the elements of inputs of A,
    for which bounds are told; the others are given. Raises ModelError for a model that cannot be read, is not well
    formed or lacks stored values, and for a box that the model does not have.
    """
    begun = time.monotonic()
    say = progress or (lambda _what, _done, _all: None)
    models = load(a) if isinstance(a, Path | str) else a, load(b) if isinstance(b, Path | str) else b
    for name, model in zip("AB", models, strict=True):
        check_complete(model)
        wrong = check_well_formed(model)
        if wrong is not None:
            raise ModelError(f"{name} cannot be run, so that there is nothing to compare: {why(wrong)}")
    ports = interface(*models)
    asked = box_of(models[0], box, inputs, sizes) if box else Box({}, inputs, "")
    chosen = proved_rules() if rules is None else rules
    with _no_garbage():
        sides, differences, proved, decisions = _proved(models, ports, chosen, strength, seconds, say)
    notes = _settled_notes(sides)
    if proved is Strength.ALLOWED and _shown_nans(sides):
        notes += (
            "BitCast shows digits of numbers that rules rewrite, and ONNX leaves open which NaN an operation gives",
        )
    found: Search | None = None
    if not (proved is not None and proved <= strength) and not ports.apart:
        say("search for an input on which they differ", 0, 0)
        found = search(models, ports, inputs, sizes, strength, seconds)
    verdict = Verdict.UNKNOWN if proved is None else PROVED[proved]
    if proved is None and found is not None and found.witness is not None and _counts(found.witness, strength):
        verdict = Verdict.DIFFERS
    bounds = None
    if asked.values and verdict is Verdict.REALS and not ports.apart:
        bounds = hull(models, ports, asked.values, asked.sets)
    took = time.monotonic() - begun
    return Comparison(
        models, ports, verdict, strength, proved, sides, differences, decisions, found, bounds, took, notes, inputs,
        asked.words, near(sides.facts, chosen, [it.pair for it in differences.islands]),
    )  # fmt: skip


_OBJECTS: Final = 100_000


@contextmanager
def _no_garbage() -> Iterator[None]:
    """With a look for garbage in cycles at every so many objects: normal forms leave next to none, and to look more
    often takes a tenth of their time."""
    usual = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _counts(witness: Witness, strength: Strength) -> bool:
    """True if a witness refutes equality of this strength: of the weaker ones one that no rounding explains."""
    return strength is Strength.EXACT or witness.beyond or witness.stuck != ("", "")


def _proved(
    models: tuple[Model, Model],
    ports: Interface,
    rules: Trusted,
    demanded: Strength,
    seconds: float,
    say: Callable[[str, int, int], None],
) -> tuple[Sides, Differences, Strength | None, tuple[ApplicationId, ...]]:
    """The normal forms that make the models equal, or those of the strength that is demanded; where they part. Tried
    are the strength that is demanded, then the others: where no weak rule fires, equality is as strong as if none had
    been admitted. What is left are islands, which are proved within some seconds."""
    facts, asked = Facts(Table()), rules_of(rules)
    deadline = time.monotonic() + seconds
    claimed = {rules.strength(rule) for rule in rules.rules}
    tried: tuple[Sides, Differences, Strength | None, tuple[ApplicationId, ...]] | None = None
    for strength in (demanded, *sorted(claimed - {demanded, Strength.EXACT})):
        say(f"normal forms, {strength.name.lower()}", 0, 0)
        sides = sided(facts, models, ports, asked, strength)
        differences = unify(facts.table, [pair for _, pair in sides.pairs], sides.rounded)
        one_sided = any(it for it in sides.unmatched) or bool(sides.declared)
        if differences and not one_sided and not ports.apart and not sides.rounded:
            say("proofs of places where they part", 0, 0)
            sides = _with_islands(sides, differences, deadline)
        decisions = decided(sides) if strength is Strength.REALS else ()
        same = bool(sides.islands) or all(a == b for _, (a, b) in sides.pairs)
        if same and not one_sided and not decisions and not ports.apart and not sides.rounded:
            used = [*(it.strength for it in sides.firings.values()), *(it.strength for it in sides.islands)]
            strongest = max([*used, _of_open(sides), _of_nans(sides, models, ports)])
            return sides, Differences((), ()), strongest, ()
        tried = tried or (sides, differences, None, decisions)
    if tried is None:
        raise ModelError("no strength was tried")
    return tried


def _with_islands(sides: Sides, differences: Differences, deadline: float) -> Sides:
    """The sides with proofs of all places where they part: of those where heads differ, or else of the outputs."""
    table = sides.table
    apart = [(name, pair) for name, pair in sides.pairs if pair[0] != pair[1]]
    outputs = [Island(pair, f"the output {name}", common(table, *pair)) for name, pair in apart]
    leaves = () if differences.constants else differences.islands
    reason = ""
    for islands in (leaves, outputs):
        if islands and {it.pair for it in islands} != ({it.pair for it in leaves} if islands is outputs else ()):
            shown, reason = prove_islands(sides.facts, islands, sides.strength, deadline)
            if shown:
                return replace(sides, islands=shown)
    return replace(sides, open_=reason)


def _of_nans(sides: Sides, models: tuple[Model, Model], ports: Interface) -> Strength:
    """Which NaN an operation gives is open, and rules do not keep it: where BitCast shows it, the digits are allowed,
    and the same only if the models are equal without rules."""
    if not _shown_nans(sides):
        return Strength.EXACT
    pairs = sided(sides.facts, models, ports, no_rules, Strength.EXACT).pairs
    return Strength.EXACT if all(a == b for _, (a, b) in pairs) else Strength.ALLOWED


def _shown_nans(sides: Sides) -> bool:
    """True if BitCast is applied to floating-point numbers that rest on what a rule has made."""
    table = sides.table
    made = {v for it in sides.firings.values() if it.rule not in OF_THE_TABLE for v in it.values if v is not None}
    made |= {v for it in sides.islands for v in it.island.pair}
    below = {table.producer(v) for _, pair in sides.pairs for root in pair for v in cone(table, root)}
    asked = [table.applications[it] for it in below if it is not None]
    shown = [it.inputs[0] for it in asked if it.name == "BitCast" and it.inputs[0] is not None]
    floats = [v for v in shown if sides.facts.content(v).element in ("", *FLOATS)]
    return any(not made.isdisjoint(cone(table, v)) for v in floats)


def _of_open(sides: Sides) -> Strength:
    """Results that the text leaves open are one set of allowed results, not one result."""
    return Strength.ALLOWED if any(_settled(sides)) else Strength.EXACT


def _settled(sides: Sides) -> tuple[int, int]:
    """The number of applications of A and of B that outputs rest on, and that may leave elements open."""
    table = sides.table
    below = [{table.producer(v) for _, pair in sides.pairs for v in cone(table, pair[k])} for k in (0, 1)]
    return len(below[0] & sides.a.settled), len(below[1] & sides.b.settled)


def _settled_notes(sides: Sides) -> tuple[str, ...]:
    counts = _settled(sides)
    if not any(counts):
        return ()
    many = "1 node" if counts[0] == 1 else f"{counts[0]} nodes"
    return (
        f"{many} of A and {counts[1]} of B may leave elements open in the text (`arbitrary`, `oneof`); those of A and"
        " of B are taken one by one to be settled alike, and no two of one model are",
    )


def sided(facts: Facts, models: tuple[Model, Model], ports: Interface, rules: Rules, strength: Strength) -> Sides:
    """Both models in normal form. What B gives is to be allowed of A: so rules that keep to what is allowed, and no
    more, rewrite A alone."""
    table = facts.table
    given: tuple[dict[TensorId, ValueId], dict[TensorId, ValueId]] = ({}, {})
    pairs: list[tuple[str, Pair]] = []
    for one, other in ports.inputs:
        value = table.given(0, one.name)
        facts.given[value] = _content(facts, value, one, other)
        given[0][one.tensor] = given[1][other.tensor] = value
        if one.default and other.default:
            defaults = stored_array(models[0], one.tensor), stored_array(models[1], other.tensor)
            if defaults[0] is not None and defaults[1] is not None:
                kept = table.stored(defaults[0]), table.stored(defaults[1])
                pairs.append((f"the stored value of the input {one.name}", kept))
    for k, alone in enumerate((ports.left, ports.right)):
        for port in alone:
            array = stored_array(models[k], port.tensor) if port.default else None
            own = table.given(0, f"{port.name} of {'AB'[k]}") if array is None else table.stored(array)
            if array is None:
                facts.given[own] = _content(facts, own, port, port, "AB"[k])
            given[k][port.tensor] = own
    normal = Normalizer(table, facts, strength, rules)
    plain = Normalizer(table, facts, Strength.EXACT, rules) if strength is Strength.ALLOWED else normal
    a, of_a = enter(normal, models[0], given[0]), normal.rounded
    normal.rounded = {}
    b, of_b = enter(plain, models[1], given[1]), plain.rounded
    shared = [
        ({_computed(table, it): it for it in of_a[v]}, {_computed(table, it): it for it in of_b[v]})
        for v in of_a
        if v in of_b
    ]
    rounded = tuple((min(x.values()), min(y.values())) for x, y in shared if x.keys().isdisjoint(y))
    pairs += [(one.name, (a.output(one.tensor), b.output(other.tensor))) for one, other in ports.outputs]
    only = a.executed - b.executed, b.executed - a.executed
    unmatched = tuple(frozenset(it for it in side if facts.may_fail(it)) for side in only)
    declared = _undeclared(facts, ports, (a, b), given)
    fired = {**plain.firings, **normal.firings}
    return Sides(table, a, b, tuple(pairs), (unmatched[0], unmatched[1]), facts, fired, strength, declared, rounded)


def _computed(table: Table, number: ApplicationId) -> Hashable:
    """What an application to stored tensors computes: the same where it stands alone."""
    it = table.applications[number]
    return it.operator, it.inputs, table.attributes_key(it.attributes)


def _undeclared(
    facts: Facts,
    ports: Interface,
    sides: tuple[Entered, Entered],
    given: tuple[Mapping[TensorId, ValueId], Mapping[TensorId, ValueId]],
) -> tuple[str, ...]:
    """The outputs whose declarations differ, and of which it is not known that they keep to them (AsDeclared)."""
    said = []
    named: list[dict[str, tuple[ValueId, int]]] = [{}, {}]
    for pair in ports.inputs:
        for k, port in enumerate(pair):
            shape = None if port.declared is None else port.declared.shape
            for axis, size in enumerate(shape or ()):
                if isinstance(size, str) and size:
                    named[k].setdefault(size, (given[k][port.tensor], axis))
    for pair in ports.outputs:
        wanted = [_wanted(port, names) for port, names in zip(pair, named, strict=True)]
        if wanted[0] == wanted[1]:
            continue
        for k, (port, side) in enumerate(zip(pair, sides, strict=True)):
            others = {n for other in ports.outputs if other[k] is not port for n in _sizes(other[k])}
            shared = others & set(_sizes(port)) - named[k].keys()
            if shared or not _keeps(facts, side.output(port.tensor), port, named[k]):
                text = type_text(port.declared)
                said.append(
                    f"{'AB'[k]} may get stuck since its output {port.name} is declared {text}, unlike the other"
                )
    return tuple(said)


def _sizes(port: Port) -> list[str]:
    """The names of open sizes in a declaration."""
    shape = None if port.declared is None else port.declared.shape
    return [n for n in shape or () if isinstance(n, str) and n]


def _wanted(port: Port, names: Mapping[str, tuple[ValueId, int]]) -> object:
    """A declaration, where names of sizes stand for the sizes of inputs."""
    it = port.declared
    if it is None or it.kind != "tensor":
        return it
    shape = it.shape
    return it.element, None if shape is None else tuple(names.get(n, n) if isinstance(n, str) else n for n in shape)


def _keeps(facts: Facts, value: ValueId, port: Port, names: Mapping[str, tuple[ValueId, int]]) -> bool:
    """True if a value has the declared element type and sizes in every run."""
    it = port.declared
    if it is None or it.kind == "unset":
        return True
    content = facts.content(value)
    if it.kind != "tensor" or content.items is not None or it.element not in ("", content.element):
        return False
    if it.shape is None:
        return True
    if content.shape is None or len(content.shape) != len(it.shape):
        return False
    open_ = [n for n in _sizes(port) if n not in names]
    if len(set(open_)) < len(open_):
        return False  # two sizes are to be one
    for ours, stated in zip(content.shape, it.shape, strict=True):
        if isinstance(stated, int) and stated >= 0 and ours != stated:
            return False
        if isinstance(stated, str) and stated in names:
            source, axis = names[stated]
            sizes = facts.content(source).shape
            if sizes is None or axis >= len(sizes) or sizes[axis] != ours:
                return False
    return True


def _content(facts: Facts, value: ValueId, one: Port, other: Port, side: str = "A") -> Content:
    """The knowledge of an input that both models accept. Open sizes have the names that the first gives them."""
    known = [it.declared for it in (one, other) if it.declared is not None and it.declared.kind == "tensor"]
    element = next((it.element for it in known if it.element), "")
    shapes = [it.shape for it in known if it.shape is not None]
    if not shapes or len({len(it) for it in shapes}) > 1:
        return Content(f"t{value}", element, None, reason="its rank is not declared")
    names = shapes[0] if one.declared is not None and one.declared.shape is not None else (None,) * len(shapes[0])
    sizes: list[Int] = []
    for axis, row in enumerate(zip(*shapes, strict=True)):
        fixed = [n for n in row if isinstance(n, int) and n >= 0]
        name = names[axis]
        symbol = f"{side}.size.{name}" if isinstance(name, str) and name else f"t{value}.size.{axis}"
        sizes.append(fixed[0] if fixed else facts.size(symbol))
    return Content(f"t{value}", element, tuple(sizes))


# ---- Rounding and decisions ----------------------------------------------------------------------

_JUMPS: Final = frozenset({"round_even", "round_down", "round_up", "order"})
"""The primitives that are not continuous in the elements that they are given."""


def decided(sides: Sides) -> tuple[ApplicationId, ...]:
    """The applications that turn values which are equal over the reals alone into what rounding may flip: results that
    are no floating-point numbers, and those of a text that rounds."""
    table = sides.table
    weak = {v for it in sides.firings.values() if it.strength is Strength.REALS for v in it.values if v is not None}
    weak |= {v for it in sides.islands if it.strength is Strength.REALS for v in it.island.pair}
    touched = set(weak)
    decisions: dict[ApplicationId, None] = {}
    below = {v for _, pair in sides.pairs for root in pair for v in cone(table, root)}
    order = sorted({made for v in below if (made := table.producer(v)) is not None})
    changed = bool(weak)
    while changed:  # bodies are numbered before the applications that hold them, but rules make values later
        changed = False
        for number in order:
            results = [v for v in table.results(number) if v is not None]
            if not touched.isdisjoint(arguments(table, results[0])) and not touched.issuperset(results):
                touched.update(results)
                changed = True
    for number in order:
        results = [v for v in table.results(number) if v is not None]
        if not touched.isdisjoint(arguments(table, results[0])) and _jumps(sides, number, results):
            decisions[number] = None
    return tuple(decisions)


def _jumps(sides: Sides, number: ApplicationId, results: list[ValueId]) -> bool:
    it = sides.table.applications[number]
    if it.operator is None:
        return True
    texts = () if it.operator.rule else reached(it.operator.statements)
    if any(node.head == "fun" and node.name in _JUMPS and _of_elements(node) for node in texts):
        return True
    contents = [sides.facts.content(v) for v in results]
    return any(c.element not in FLOATS and not (it.operator.rule and not c.element) for c in contents)


def _of_elements(node: Core) -> bool:
    return any(part.sort is not None and "Element" in str(part.sort) for part in node.parts)
