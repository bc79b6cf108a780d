"""One node before it runs: what its operator's text requires of sizes and data, and the shapes that it gives.

The text is run by the smt interpretation on what is known of the inputs. A requirement becomes a formula over the
sizes and elements that are open; the statements behind it are evaluated where it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite, prod
from typing import cast

import numpy as np
from sonnx.spec.elaborate.core import Binding, Core, CoreOperator, CoreStatement
from sonnx.spec.language.syntax import DEMANDS, Port
from sonnx.spec.library import specification

from ...errors import InternalError, Unsupported
from ...formulas.terms import FALSE, TRUE, Term, weight
from ...model.elements import ELEMENT_TYPES, INTEGERS, dtype_of
from ...model.schemas import Formal, schema_of
from ..application import Application, AttributeData, Outputs
from ..symbolic.elements.known import Known, Number
from ..symbolic.elements.opaque import Chosen, Read
from ..symbolic.expressions import truth
from ..symbolic.numbers import Int, Real, both, either, equal, opposite, substitute_term, within
from ..symbolic.statements import (
    Meaning,
    asked,
    attribute,
    bind_shapes,
    compose,
    defaults,
    opening,
    perform,
)
from ..symbolic.values import (
    Apply,
    Array,
    Dead,
    Element,
    ElementType,
    Evaluation,
    Listed,
    Name,
    Refused,
    Scope,
    Split,
    Undefined,
    Unranked,
    Value,
)
from .contents import (
    FOLDED,
    HEADER,
    HERE,
    LARGE,
    OPEN,
    SMALL,
    Content,
    Demand,
    Examined,
    Examining,
    Facts,
    Items,
    Possible,
    Site,
    Symbols,
    constant,
    joined,
    learn,
    mentioned,
    places,
    renamed,
    value,
)

# What a node gives: shapes as small terms, small tensors element by element, constants computed.


def outputs(walk: Examining, meaning: Meaning, reason: str) -> tuple[Content | None, ...]:
    """The contents of the outputs by position, None for one that is not asked for. reason: why some are open."""
    values: list[Value | None] = []
    ports: list[Port] = []
    for port in walk.site.operator.outputs:
        value = meaning.outputs.get(port.name)
        listed = list(value) if port.mark == "*" and type(value) is tuple else [value]
        values += listed
        ports += [port] * len(listed)
    contents: list[Content | None] = []
    folded = None if walk.violated else _folded(walk.site, values)
    for position, named in enumerate(walk.site.outputs):
        value = values[position] if position < len(values) else None
        if not named:
            contents.append(None)
        elif folded is not None and position < len(folded) and folded[position] is not None:
            contents.append(folded[position])
        elif walk.violated or value is None:
            contents.append(Content("", "", None, reason=reason, made=walk.made, dead=walk.violated))
        else:
            kind = walk.env.get(walk.site.operator.names[ports[position].type]) if position < len(ports) else None
            contents.append(_any(walk, value, kind.name if isinstance(kind, ElementType) else ""))
    return tuple(contents)


def _any(walk: Examining, value: Value, kind: str = "") -> Content:
    """A tensor, sequence or optional. kind: its type, where the value does not say it."""
    match value:
        case Array():
            return _content(walk, value)
        case Unranked():
            element = value.type.name if value.type.name in ELEMENT_TYPES else ""
            return Content("", element, None, reason="entries of a sequence differ in the number of axes", made=HERE)
        case Listed():
            made = tuple(_entry_of(walk, form) for form in value.forms)
            items = (
                Items(value.length, made) if value.told_apart else Items(value.length, None, tuple(dict.fromkeys(made)))
            )
            return Content("", value.kind.name, None, items=items)
        case tuple():
            return Content("", kind, None, items=Items(len(value), tuple(_entry_of(walk, form) for form in value)))
        case _:
            raise InternalError(f"{value!r} is no tensor, sequence or optional")


def _entry_of(walk: Examining, value: Value) -> Content:
    """The knowledge of an entry: its type and sizes."""
    if not isinstance(value, Array):
        return _any(walk, value)
    element = value.type.name if value.type.name in ELEMENT_TYPES else ""
    return Content("", element, value.shape)


def _content(walk: Examining, value: Array) -> Content:
    element = value.type.name if value.type.name in ELEMENT_TYPES else ""
    shape = tuple(simple(walk, n, f"{value.name}.size.{axis}") for axis, n in enumerate(value.shape))
    entries = _entries(walk, value)
    if entries is not None:
        entries = tuple(
            simple(walk, item, f"{value.name}.entry.{k}" + (".Int" if isinstance(item, Term) and of_data(item) else ""))
            if isinstance(item, int | Term)
            else item
            for k, item in enumerate(entries)
        )
    if entries is not None and all(isinstance(item, int) for item in entries):
        data = np.array(entries, object).reshape(cast("tuple[int, ...]", value.shape)).astype(dtype_of(element))
        return Content("", element, value.shape, None, data)
    return Content("", element, shape, entries, law=None if entries is not None else _law(walk, value))


def _law(walk: Examining, value: Array) -> tuple[tuple[str, ...], Int | Read] | None:
    """The element at any index of a tensor of integers, where that is a number: of ArgMax a position, for instance."""
    run = walk.run
    if "int" not in value.type.name or not value.shape:
        return None
    variables = tuple(f"{value.name}.at.{axis}" for axis in range(len(value.shape)))
    index = tuple(map(Term, variables))
    kept = dict(run.symbols)
    try:
        in_range = both(*(within(i, n) for i, n in zip(index, value.shape, strict=True)))
        item = value.read(index, Scope(walk.env, run, bound=variables).under(in_range))
        number = item.value if isinstance(item, Element) else item
        if isinstance(item, Element) and isinstance(number, Read):
            place = run.algebra.lift("Int", item, Scope(walk.env, run, bound=variables).under(in_range))
            if not isinstance(place, Term) or weight(place) > LARGE:
                run.symbols = kept
                return None
            learn(walk, *run.axioms, *run.assumed)
            return variables, number
        if isinstance(number, int) or (isinstance(number, Term) and weight(number) <= LARGE):
            learn(walk, *run.axioms, *run.assumed)
            return variables, number
        run.symbols = kept
    except (Dead, Undefined, Split, Unsupported, InternalError):
        run.symbols = kept
    finally:
        run.axioms.clear()
        run.assumed.clear()
    return None


def simple(walk: Examining, number: Int, name: str) -> Int:
    """A size or entry as a small term: alternatives that the facts decide are decided, others get a symbol."""
    number = _chosen(walk, number) if isinstance(number, Term) else number
    if not isinstance(number, Term) or (weight(number) <= LARGE and not branches(number) and not of_data(number)):
        return number
    if number.op in TRUTHS:
        return number
    walk.run.symbols[name] = (0, "Int")
    learn(walk, Term("=", (Term(name), number)))
    return Term(name)


TRUTHS = frozenset({"and", "or", "not", "=", "<=", "iff", "=>", "forall", "exists"})


def _chosen(walk: Examining, term: Term) -> Int:
    while isinstance(term, Term):
        choice = _choice(term)
        if choice is None:
            return term
        condition = cast("Term", choice.args[0])
        if not walk.possible((*walk.facts, condition), walk.run.symbols):
            term = cast("Term", substitute_term(term, choice, cast("Int", choice.args[2])))
        elif not walk.possible((*walk.facts, opposite(condition)), walk.run.symbols):
            term = cast("Term", substitute_term(term, choice, cast("Int", choice.args[1])))
        else:
            return term
    return term


def of_data(term: Term) -> bool:
    """True if a term is about elements of tensors: as a size it gets a symbol of its own, since sizes are never wrapped
    around."""
    return any(name.rpartition(".")[2] in SORTS for name in mentioned(term))


SORTS = frozenset({"Int", "Real", "Bool"})


def _choice(term: Term) -> Term | None:
    """An alternative in a term, an innermost one."""
    for part in term.args:
        choice = _choice(part) if isinstance(part, Term) else None
        if choice is not None:
            return choice
    return term if term.op == "ite" else None


def branches(term: Term) -> bool:
    """True if a term has alternatives."""
    return _choice(term) is not None


def _folded(site: Site, values: Sequence[Value | None]) -> tuple[Content | None, ...] | None:
    """The outputs computed by the ieee interpretation, where all inputs are constants and the outputs small."""
    if any(c is not None and c.data is None for c in site.inputs):
        return None
    for item in values:
        if not isinstance(item, Array):
            return None
        sizes = [n for n in item.shape if isinstance(n, int)]
        if len(sizes) < len(item.shape):  # the data decide it: about as large as they are
            sizes = [sum(c.data.size for c in site.inputs if c is not None and c.data is not None)]
        if prod(sizes) > FOLDED:
            return None
    attributes: dict[str, AttributeData] = {}
    for name, data in site.attributes.items():
        if isinstance(data, Term) or (isinstance(data, tuple) and any(isinstance(part, Term) for part in data)):
            return None  # a symbol stands for it
        attributes[name] = cast("AttributeData", data)
    from ..compiled import ieee  # in few models all inputs of a node are known

    inputs = tuple(None if c is None else c.data for c in site.inputs)
    try:
        done = ieee.apply(Application(site.operator.name, site.version, inputs, attributes, site.outputs, 64 << 20))
    except (Unsupported, MemoryError):
        return None
    if not isinstance(done, Outputs) or any(mask is not None for mask in done.free):
        return None
    return tuple(constant("", v) if isinstance(v, np.ndarray) else None for v in done.values)


def _entries(walk: Examining, value: Array) -> tuple[Number | None, ...] | None:
    """The elements of a small tensor of integers or truth values, as far as they follow from what is known."""
    kind = value.type.name
    if kind not in INTEGERS and kind != "bool":
        return None
    size = 1
    for n in value.shape:
        if isinstance(n, Term):
            return None
        size *= n
    if size > SMALL:
        return None
    entries = tuple(_entry(walk, value, index) for index in places(value.shape))
    return entries if any(e is not None for e in entries) else None


def _entry(walk: Examining, value: Array, index: tuple[Int, ...]) -> Number | None:
    run = walk.run
    kept, run.symbols = run.symbols, dict(run.symbols)
    try:
        item = value.read(index, Scope(walk.env, run))
        number = item.value if isinstance(item, Element) else item
        if isinstance(item, Element) and isinstance(number, Chosen) and "int" in item.type.name:
            return _alternatives(walk, run.algebra.lift("Int", item, Scope(walk.env, run)), kept)
        if not index and isinstance(number, Term) and "int" in value.type.name and weight(number) <= LARGE:
            # A single element may be a position that the operator chooses: it keeps its symbol, as in a law.
            kept |= run.symbols
            learn(walk, *run.axioms, *run.assumed)
    except (Dead, Undefined, Split, Unsupported, InternalError):
        return None
    finally:
        fresh, run.symbols = run.symbols.keys() - kept.keys(), kept
        run.axioms.clear()
        run.assumed.clear()
    if isinstance(number, Read) and all(isinstance(place, int) for place in number.index):
        return number
    if isinstance(number, float) and number == 0:
        return 0
    if isinstance(number, Term) and (number in (TRUE, FALSE)):
        return int(number == TRUE)
    if isinstance(number, int) or (isinstance(number, Term) and not _mentions(number, fresh)):
        return number
    return None


def _alternatives(walk: Examining, number: object, kept: dict[str, tuple[int, str]]) -> Term | None:
    """One element of a tensor or another, in terms of those; None where it is about anything else."""
    run = walk.run
    fresh = run.symbols.keys() - kept.keys()
    own = {name for name in fresh if isinstance(number, Term) and name in mentioned(number)}
    if not isinstance(number, Term) or not all(name.endswith(".Int") for name in own) or weight(number) > LARGE:
        return None
    kept |= {name: run.symbols[name] for name in own}
    learn(walk, *(fact for fact in run.axioms if not mentioned(fact) & (fresh - own)))
    return number


def _mentions(term: Term, names: set[str]) -> bool:
    return term.op in names or any(isinstance(part, Term) and _mentions(part, names) for part in term.args)


# One node before it runs: what its operator's text requires of sizes and data, and the shapes that it gives.
# The text is run by the smt interpretation on what is known of the inputs. A requirement becomes a formula over the
# sizes and elements that are open; the statements behind it are evaluated where it holds.


CASES = 12
"""An examination is continued for each case of what data decide, for at most so many cases together."""
STEPS = 10_000
"""Stored tensors with at most so many elements are looked at one by one."""


Observe = Callable[[int, Core, Examining], None]


def requirements(operator: CoreOperator) -> tuple[int, ...]:
    """The positions of the statements that require something."""
    return tuple(k for k, s in enumerate(operator.statements) if s.kind in DEMANDS)


def examine(site: Site, facts: Facts, symbols: Symbols, possible: Possible, observe: Observe | None = None) -> Examined:
    """The requirements of the text at the site under the facts, and what it gives there. observe: see `Examining`."""
    dead = next((c for c in site.inputs if c is not None and c.dead), None)
    if dead is not None:  # no run comes here
        nothing = replace(dead, name="", element="")
        return Examined((), tuple(nothing if named else None for named in site.outputs), (), {})
    unranked, matters = _unranked(site)
    if unranked is not None and matters:
        return _given_up(site, unranked)
    if misfit := _misfit(site):
        return _given_up(site, Content("", "", None, reason=misfit))
    walk = _begun(site, facts, symbols, possible)
    walk.observe = observe
    leaves = list(_leaves(walk, 0, Meaning(site.operator, {}, True, frozenset()), _header(walk), CASES))
    if unranked is not None and any(leaf.reason for leaf in leaves):  # the text asks for the sizes
        return _given_up(site, unranked)
    first = leaves[0]
    if first.walk is not walk:  # the examination branched
        results = _united(walk, leaves)
    else:
        if walk.without_value:  # the definitions of operators have a value wherever they may
            walk.demands.append(Demand(HEADER, FALSE, (), reason=first.reason))
            walk.violated = True
        _close(walk, reason=first.reason)
        results = outputs(walk, first.meaning, first.reason)
    new = {name: s for name, s in walk.run.symbols.items() if name not in symbols}
    return Examined(tuple(walk.demands), results, walk.facts, new)


def demanded(site: Site, facts: Facts, symbols: Symbols, possible: Possible) -> tuple[Demand, ...]:
    """The requirements of the text at a site where it is known to have a value: those of `examine`, without a look at
    what no requirement rests on; none behind one that fails."""
    walk = _begun(site, facts, symbols, possible)
    reason = _header(walk)
    meaning = Meaning(site.operator, {}, True, frozenset())
    for place in _rested_on(site.operator):
        if not reason:
            meaning, reason, _ = _statement(walk, place, site.operator.statements[place], meaning)
    return examine(site, facts, symbols, possible).demands if reason and not walk.violated else tuple(walk.demands)


@cache
def _rested_on(operator: CoreOperator) -> tuple[int, ...]:
    """The positions of the requirements of a definition, and of the statements whose names they use."""
    needed: set[int] = set()
    names: set[Binding] = set()
    for place, statement in reversed(tuple(enumerate(operator.statements))):
        if statement.kind in DEMANDS or not names.isdisjoint(statement.binds):
            needed.add(place)
            names |= {core.variable for core in statement.nodes() if core.variable is not None}
    return tuple(sorted(needed))


def follow(
    site: Site, facts: Facts, symbols: Symbols, possible: Possible, apply: Apply
) -> tuple[Meaning | None, str, Scope]:
    """The definition at a site, statement by statement, with another meaning of the operators that it applies. What it
    gives, None where that depends on more than is known, then why; and the scope behind it.
    """
    walk = _begun(site, facts, symbols, possible)
    walk.run.apply = apply
    reason = _header(walk)
    meaning = Meaning(site.operator, {}, True, frozenset())
    for place, statement in enumerate(site.operator.statements):
        if not reason:
            meaning, reason, _ = _statement(walk, place, statement, meaning)
    return None if reason else meaning, reason, Scope(walk.env, walk.run)


def _unranked(site: Site) -> tuple[Content | None, bool]:
    """An input of which the number of axes is open, rather one that no data decide; and True if such an input matters
    whatever the text: the operator names its dimensions, or takes a list there.
    """
    ports = site.operator.inputs
    unranked = [
        (c, ports[min(position, len(ports) - 1)])
        for position, c in enumerate(site.inputs if ports else ())
        if c is not None and c.shape is None and c.items is None
    ]
    lists = {
        port.name
        for port, formal in zip(ports, _formals(site.operator), strict=False)
        if formal.types and {_kind(text) for text in formal.types} <= {"sequence", "optional"}
    }
    named = lists | {port.name for port in ports if port.shape is not None or port.mark == "*"}
    worst = next((c for c, _ in unranked if c.made is None), unranked[0][0] if unranked else None)
    return worst, any(port.name in named for _, port in unranked)


def _misfit(site: Site) -> str:
    """Why an input is nothing that the operator can be applied to: a sequence in place of a tensor, or the reverse."""
    formals, ports = _formals(site.operator), site.operator.inputs
    for position, content in enumerate(site.inputs):
        if content is None or not formals:
            continue
        at = min(position, len(formals) - 1)
        given = content.element.partition("_")[0] if content.items is not None else "tensor"
        admitted = {_kind(text) for text in formals[at].types}
        if admitted and given not in admitted:
            return f"{ports[at].name} of {site.operator.name}-{site.version} is given a {given}"
    return ""


def _formals(operator: CoreOperator) -> tuple[Formal, ...]:
    """The formal inputs in the newest version that a definition covers."""
    schema = schema_of(operator.name, operator.last)
    return () if schema is None else schema.inputs


def _kind(text: str) -> str:
    """The element type that a type in the schema's words is."""
    return {"seq": "sequence", "optional": "optional", "map": "map"}.get(text.partition("(")[0], "tensor")


def _sized(content: Content | None) -> bool:
    """Every size of a tensor is a number; an input that is left out counts as one."""
    return content is None or (content.shape is not None and all(isinstance(n, int) for n in content.shape))


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One case of an examination. condition: holds in this case and no other. reason: why something is open there."""

    walk: Examining
    meaning: Meaning
    reason: str
    condition: tuple[Term, ...] = ()


def _leaves(
    walk: Examining, position: int, meaning: Meaning, reason: str, most: int, condition: tuple[Term, ...] = ()
) -> Iterator[_Leaf]:
    """The cases in which the statements from a position on can be evaluated; most: so many at each split."""
    for place, statement in enumerate(walk.site.operator.statements[position:], position):
        if reason or statement.kind == "rule":
            break
        meaning, reason, split = _statement(walk, place, statement, meaning)
        if split is None:
            continue
        cases, rest = _cases(walk, split)
        if not cases or len(cases) + (rest is not None) > most:
            walk.about, walk.made = split.term, HERE
            break
        for case in cases:
            fact = _decision(split, case)
            branch = _branch(walk)
            branch.run.decided = {**branch.run.decided, split.term: case}
            learn(branch, *fact)
            yield from _leaves(branch, place, meaning, "", most // len(cases), (*condition, *fact))
        if rest is not None:
            branch = _branch(walk)
            branch.about, branch.made = split.term, HERE
            learn(branch, *rest)
            yield _Leaf(branch, meaning, f"{_where(walk, statement)} depends on", (*condition, *rest))
        return
    yield _Leaf(walk, meaning, reason, condition)


def _branch(walk: Examining) -> Examining:
    """A copy that goes its own way."""
    run = walk.run
    own = replace(
        run, symbols=dict(run.symbols), axioms=[], assumed=[], obligations=[], journal=set(), decided=dict(run.decided)
    )
    return replace(walk, run=own, demands=[])


def _close(walk: Examining, *, reason: str) -> None:
    """Note the requirements that were not reached as open."""
    if reason and not walk.violated:  # behind a requirement that fails none is asked
        done = {demand.position for demand in walk.demands}
        walk.demands += [
            Demand(k, None, (), reason, walk.about, walk.made)
            for k in requirements(walk.site.operator)
            if k not in done
        ]


def _united(walk: Examining, leaves: Sequence[_Leaf]) -> tuple[Content | None, ...]:
    """The demands and outputs of all cases in one.

    What is introduced in one case gets a name of its own. A demand holds where it does in each case; one that is open
    in some case is open, and data decide it if another case shows that it can hold.
    """
    known, base = set(walk.run.symbols), dict.fromkeys(walk.facts)
    reached = {demand.position for demand in walk.demands}
    stems = {f"{port.name}" for port in walk.site.operator.inputs}
    demands: dict[int, list[tuple[Term, Demand]]] = {}
    cases: list[tuple[Term, tuple[Content | None, ...]]] = []
    for number, leaf in enumerate(leaves):
        reason = leaf.reason
        _close(leaf.walk, reason=reason)
        results = outputs(leaf.walk, leaf.meaning, reason)
        new = {name: s for name, s in leaf.walk.run.symbols.items() if name not in known}
        own = {name: name if _stem(name) in stems else f"{name}~{number}" for name in new}
        examined = renamed(Examined(tuple(leaf.walk.demands), results, leaf.walk.facts, new), own)
        walk.run.symbols.update(examined.symbols)
        condition = both(*leaf.condition)
        for demand in examined.demands:
            facts = tuple(either(opposite(condition), fact) for fact in demand.facts if fact not in base)
            demands.setdefault(demand.position, []).append((condition, replace(demand, facts=facts)))
        if not leaf.walk.violated:
            cases.append((condition, examined.outputs))
        learn(walk, *(either(opposite(condition), fact) for fact in examined.facts if fact not in base))
    for position, demanded in demands.items():
        if position not in reached:
            walk.demands.append(_demand(tuple(base), position, demanded, can_hold=bool(cases)))
    walk.violated = not cases
    return tuple(_output(walk, position, cases) for position in range(len(walk.site.outputs)))


def _stem(symbol: str) -> str:
    stem, _, sort = symbol.rpartition(".")
    if sort not in ("Int", "Real", "Bool"):
        return ""
    base, _, number = stem.rpartition(".")
    return base if number.isdigit() else stem


def _demand(base: Facts, position: int, cases: Sequence[tuple[Term, Demand]], *, can_hold: bool) -> Demand:
    opened = [demand for _, demand in cases if demand.goal is None]
    if opened:
        worst = next((demand for demand in opened if demand.made is None or not can_hold), opened[0])
        return replace(worst, made=worst.made if can_hold else None, facts=())
    goals = [either(opposite(condition), demand.goal) for condition, demand in cases if demand.goal is not None]
    facts = dict.fromkeys((*base, *(fact for _, demand in cases for fact in demand.facts)))
    return Demand(position, both(*goals), tuple(facts))


def _output(walk: Examining, position: int, cases: Sequence[tuple[Term, tuple[Content | None, ...]]]) -> Content | None:
    contents = [(condition, row[position]) for condition, row in cases]
    given = [(condition, content) for condition, content in contents if content is not None]
    if not walk.site.outputs[position]:
        return None
    if not given:
        return Content("", "", None, reason=f"{walk.site.operator.name} has no result here", dead=True)
    ports = walk.site.operator.outputs
    port = ports[min(position, len(ports) - 1)]
    name = f"{port.name}.{position - len(ports) + 1}" if port.mark == "*" else port.name
    return joined(given, lambda number, part: simple(walk, number, f"{name}.{part}"))


def _given_up(site: Site, given: Content) -> Examined:
    """The rest that can be said where the number of axes of an input is open."""
    reason, made = given.reason, given.made
    demands = tuple(Demand(k, None, (), reason, None, made) for k in (HEADER, *requirements(site.operator)))
    types: dict[str, str] = {}
    for port, content in zip(site.operator.inputs, site.inputs, strict=False):
        if content is not None and content.element:
            types.setdefault(port.type, content.element)
    ports = site.operator.outputs
    kinds = [types.get(ports[min(k, len(ports) - 1)].type, "") if ports else "" for k in range(len(site.outputs))]
    outputs = tuple(
        Content("", kind, None, reason=reason, made=made) if named else None
        for kind, named in zip(kinds, site.outputs, strict=True)
    )
    return Examined(demands, outputs, (), {})


def _begun(site: Site, facts: Facts, symbols: Symbols, possible: Possible) -> Examining:
    operator = site.operator
    ports: dict[str, Value | None] = {}
    types: dict[Name, Value] = {}
    constants = {}
    for position, port in enumerate(operator.inputs):
        actual = site.inputs[position:] if port.mark == "*" else site.inputs[position : position + 1]
        made: list[Value] = []
        for number, content in enumerate(actual):
            if content is None:
                continue
            stem = f"{port.name}.{number}" if port.mark == "*" else port.name
            if content.data is not None:
                constants[stem] = content.data
            made.append(value(content, stem))
            if content.element:
                types.setdefault(operator.names[port.type], ElementType(content.element))
        ports[port.name] = tuple(made) if port.mark == "*" else made[0] if made else None
    algebra = Known(constants)
    known = dict(symbols)
    attributes: dict[str, Value | None] = defaults(operator, site.version)
    for name, data in site.attributes.items():
        if isinstance(data, float) and not isfinite(data):
            known[f"attribute.{name}"] = (0, "Real")
            attributes[name] = Real(Term(f"attribute.{name}"))  # no number: what is required of it stays open
        else:
            attributes[name] = attribute(name, data, algebra)
    env = {**types, **opening(operator, ports, attributes), **asked(operator, site.outputs)}
    run = Evaluation(
        cores=specification().cores,
        apply=compose,
        algebra=algebra,
        texts=(),
        decided={},
        path=facts,
        lazy=True,
        symbols=known,
        base=frozenset(known),
    )
    return Examining(site, run, env, facts, possible)


def _header(walk: Examining) -> str:
    """The names of dimensions, and that the shapes of the inputs fit; why nothing follows, or nothing."""
    operator = walk.site.operator
    scope = Scope(walk.env, walk.run)
    try:
        walk.env = bind_shapes(operator, scope, operator.span).env
        goal = both(*(obligation.goal for obligation in walk.run.obligations))
    except Dead:
        goal = FALSE
    walk.run.obligations.clear()
    walk.run.quiet += 1
    return _required(walk, HEADER, goal)


def _required(walk: Examining, position: int, goal: Term) -> str:
    """Note a requirement, and go on where it holds; why nothing follows, or nothing."""
    walk.demands.append(Demand(position, goal, walk.facts))
    if goal == FALSE or not (goal == TRUE or walk.possible((*walk.facts, goal), walk.run.symbols)):
        walk.violated = True
        return f"{walk.site.operator.name} has no result here"
    learn(walk, goal)
    return ""


def _statement(
    walk: Examining, position: int, statement: CoreStatement, meaning: Meaning
) -> tuple[Meaning, str, Split | None]:
    """One statement: what the outputs are by then, why nothing follows, or nothing, and what is to be decided first."""
    run = walk.run
    while True:
        run.base = frozenset(run.symbols)
        scope = Scope(walk.env, run)
        try:
            if statement.kind in DEMANDS:
                goal = _exactly(walk, statement, truth(statement.body, scope))
                if walk.observe is not None:
                    walk.observe(position, statement.body, walk)
                learn(walk, *run.axioms)
                run.axioms.clear()
                if statement.kind == "restrict":
                    walk.demands.append(Demand(position, goal, walk.facts))
                    return meaning, "", None
                return meaning, _required(walk, position, goal), None
            behind, meaning = perform(statement, scope, meaning)
        except Split as split:
            case = _case(walk, split)
            if case is None:
                return meaning, f"{_where(walk, statement)} depends on", split
            run.decided = {**run.decided, split.term: case}
            learn(walk, *_decision(split, case))
            continue
        except Dead as dead:
            sized = statement.kind == "type" or isinstance(dead, Refused) or all(map(_sized, walk.site.inputs))
            walk.without_value = statement.kind not in DEMANDS and sized
            return meaning, f"{_where(walk, statement)} has no value", None
        except Undefined as problem:
            return meaning, str(problem), None
        except (Unsupported, InternalError) as problem:
            return meaning, f"{_where(walk, statement)}: {problem}", None
        except RecursionError:  # a recurrence over terms, each of which contains the one before
            return meaning, f"{_where(walk, statement)}: terms nest too deeply to be examined", None
        walk.env = behind.env
        learn(walk, *behind.facts, *run.axioms, *run.assumed)
        run.axioms.clear()
        run.assumed.clear()
        return meaning, "", None


def _exactly(walk: Examining, statement: CoreStatement, goal: Term) -> Term:
    """The requirement step by step where stored elements decide it, which one question about any of them does not."""
    run = walk.run
    contents = [content for content in walk.site.inputs if content is not None]
    if goal in (TRUE, FALSE) or all(content.data is None for content in contents):
        return goal
    if any(content.items is not None or content.size is None or content.size > STEPS for content in contents):
        return goal
    kept = run.symbols, list(run.axioms)
    run.whole, run.symbols = True, dict(run.symbols)
    try:
        exact = truth(statement.body, Scope(walk.env, run))
    except (Split, Dead, Undefined, Unsupported, InternalError):
        return goal
    finally:
        run.whole = False
        run.symbols, run.axioms[:] = kept
    return exact if exact in (TRUE, FALSE) else goal


def _case(walk: Examining, split: Split) -> int | str | bool | None:
    """The one case of a split that the facts leave; None where there are several."""
    symbols = {**walk.run.symbols, **split.symbols}
    facts = (*walk.facts, *split.facts)
    if split.soft and walk.possible((*facts, *_outside(split)), symbols):
        return OPEN
    left: list[int | bool] = []
    for candidate in split.candidates:
        if isinstance(candidate, str):
            return None
        fact = _decision(split, candidate)[0]
        if fact != FALSE and walk.possible((*facts, fact), symbols):
            left.append(candidate)
            if len(left) > 1:
                return None
    if not left or type(left[0]) is bool or split.soft or not walk.possible((*facts, *_outside(split)), symbols):
        return left[0] if left else None
    return None


def _outside(split: Split) -> tuple[Term, ...]:
    """That the term is none of the numbers."""
    return tuple(opposite(equal(split.term, c)) for c in split.candidates if type(c) is int)


def _cases(walk: Examining, split: Split) -> tuple[list[int | bool], tuple[Term, ...] | None]:
    """All cases of a split that the facts leave, none for one of texts; and what holds in no case, if that can be."""
    symbols = {**walk.run.symbols, **split.symbols}
    facts = (*walk.facts, *split.facts)
    if any(isinstance(c, str) for c in split.candidates) or not names_within(split.term, walk.run.symbols):
        return [], None
    cases = [c for c in split.candidates if not isinstance(c, str)]
    left = [c for c in cases if (f := _decision(split, c)[0]) != FALSE and walk.possible((*facts, f), symbols)]
    outside = _outside(split)
    open_ = bool(outside) and walk.possible((*facts, *outside), symbols)
    return left, outside if open_ else None


def names_within(term: Term, symbols: Symbols) -> bool:
    """True if a term is about symbols that are there before the statement is evaluated."""
    return all(not isinstance(part, Term) or names_within(part, symbols) for part in term.args) and (
        bool(term.args) or term.op in symbols or term in (TRUE, FALSE)
    )


def _decision(split: Split, case: int | str | bool) -> tuple[Term, ...]:
    match case:
        case bool():
            return (split.term if case else opposite(split.term),)
        case int():
            return (equal(split.term, case),)
        case _:
            return ()


def _where(walk: Examining, statement: CoreStatement) -> str:
    named = statement.name or ("" if statement.kind == "along" else "".join(it.name for it in statement.binds[:1]))
    return f"{named or statement.kind} of {walk.site.operator.name}-{walk.site.version}"
