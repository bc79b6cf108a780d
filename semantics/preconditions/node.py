"""One node before it runs: what its operator's text requires of sizes and data, and the shapes that it gives.

The text is run by the smt interpretation on what is known of the inputs. A requirement becomes a formula over the
sizes and elements that are open; the statements behind it are evaluated where it holds.
"""

from __future__ import annotations

from math import isfinite

from sonnx.spec.library import specification
from sonnx.spec.syntax import DEMANDS, Operator, Statement

from ..errors import InternalError, Unsupported
from ..interpretations.symbolic import Meaning, asked, bind_shapes, opening, perform
from ..interpretations.symbolic_application import attribute
from ..interpretations.symbolic_composition import compose, defaults
from ..interpretations.symbolic_expr import truth
from ..interpretations.symbolic_numbers import Real, both, equal, opposite
from ..interpretations.symbolic_values import (
    Dead,
    ElementType,
    Run,
    Scope,
    Split,
    Undefined,
    Value,
)
from ..terms import FALSE, TRUE, Term
from .contents import HERE, Content, array
from .examining import HEADER, OPEN, Demand, Examined, Examining, Facts, Possible, Site, Symbols, learn
from .known import Known
from .outputs import outputs

STEPS = 10_000
"""Stored tensors with at most so many elements are looked at one by one."""


def requirements(operator: Operator) -> tuple[int, ...]:
    """The positions of the statements that require something."""
    return tuple(k for k, s in enumerate(operator.statements) if s.kind in DEMANDS)


def examine(site: Site, facts: Facts, symbols: Symbols, possible: Possible) -> Examined:
    """What the text requires of the site under the facts, and what it gives there."""
    open_input = next((c for c in site.inputs if c is not None and c.shape is None), None)
    if open_input is not None:
        return _given_up(site, open_input)
    walk = _begun(site, facts, symbols, possible)
    reason = _header(walk)
    meaning = Meaning(site.operator, {}, True, frozenset())
    for position, statement in enumerate(site.operator.statements):
        if reason or statement.kind == "rule":
            break
        meaning, reason = _statement(walk, position, statement, meaning)
    if reason and not walk.violated:  # behind a requirement that fails none is asked
        done = {demand.position for demand in walk.demands}
        walk.demands += [Demand(k, None, (), reason, walk.about, walk.made) for k in requirements(site.operator) if k not in done]
    results = outputs(walk, meaning, reason)
    new = {name: s for name, s in walk.run.symbols.items() if name not in symbols}
    return Examined(tuple(walk.demands), results, walk.facts, new)


def _given_up(site: Site, given: Content) -> Examined:
    """What is left to say where the number of axes of an input is open."""
    reason, made = given.reason, given.made
    demands = tuple(Demand(k, None, (), reason, None, made) for k in (HEADER, *requirements(site.operator)))
    outputs = tuple(Content("", "", None, reason=reason, made=made) if named else None for named in site.outputs)
    return Examined(demands, outputs, (), {})


def _begun(site: Site, facts: Facts, symbols: Symbols, possible: Possible) -> Examining:
    operator = site.operator
    ports: dict[str, Value | None] = {}
    types: dict[str, Value] = {}
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
            made.append(array(content, stem))
            if content.element and port.type not in types:
                types[port.type] = ElementType(content.element)
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
    run = Run(
        functions=specification().functions,
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


def _statement(walk: Examining, position: int, statement: Statement, meaning: Meaning) -> tuple[Meaning, str]:
    """One statement: what the outputs are by then, and why nothing follows, or nothing."""
    run = walk.run
    while True:
        run.base = frozenset(run.symbols)
        scope = Scope(walk.env, run)
        try:
            if statement.kind in DEMANDS:
                goal = _exactly(walk, statement, truth(statement.expr, scope))
                learn(walk, *run.axioms)
                run.axioms.clear()
                if statement.kind == "restrict":
                    walk.demands.append(Demand(position, goal, walk.facts))
                    return meaning, ""
                return meaning, _required(walk, position, goal)
            behind, meaning = perform(statement, scope, meaning)
        except Split as split:
            case = _case(walk, split)
            if case is None:
                walk.about, walk.made = split.term, HERE
                return meaning, f"{_where(walk, statement)} depends on"
            run.decided = {**run.decided, split.term: case}
            learn(walk, *_decision(split, case))
            continue
        except Dead:
            return meaning, f"{_where(walk, statement)} has no value"
        except Undefined as problem:
            return meaning, str(problem)
        except (Unsupported, InternalError) as problem:
            return meaning, f"{_where(walk, statement)}: {problem}"
        walk.env = behind.env
        learn(walk, *behind.facts, *run.axioms, *run.assumed)
        run.axioms.clear()
        run.assumed.clear()
        return meaning, ""


def _exactly(walk: Examining, statement: Statement, goal: Term) -> Term:
    """The requirement step by step where stored elements decide it, which one question about any of them does not."""
    run = walk.run
    contents = [content for content in walk.site.inputs if content is not None]
    if goal in (TRUE, FALSE) or all(content.data is None for content in contents):
        return goal
    if any(content.size is None or content.size > STEPS for content in contents):
        return goal
    kept = run.symbols, list(run.axioms)
    run.whole, run.symbols = True, dict(run.symbols)
    try:
        found = truth(statement.expr, Scope(walk.env, run))
    except (Split, Dead, Undefined, Unsupported, InternalError):
        return goal
    finally:
        run.whole = False
        run.symbols, run.axioms[:] = kept
    return found if found in (TRUE, FALSE) else goal


def _case(walk: Examining, split: Split) -> int | str | bool | None:
    """The one case of a split that the facts leave; None where there are several."""
    symbols = {**walk.run.symbols, **split.symbols}
    facts = (*walk.facts, *split.facts)
    numbers = [c for c in split.candidates if type(c) is int]
    outside = tuple(opposite(equal(split.term, c)) for c in numbers)
    if split.soft and walk.possible((*facts, *outside), symbols):
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
    if not left or type(left[0]) is bool or split.soft or not walk.possible((*facts, *outside), symbols):
        return left[0] if left else None
    return None


def _decision(split: Split, case: int | str | bool) -> tuple[Term, ...]:
    match case:
        case bool():
            return (split.term if case else opposite(split.term),)
        case int():
            return (equal(split.term, case),)
        case _:
            return ()


def _where(walk: Examining, statement: Statement) -> str:
    name = statement.names[0] if statement.names else statement.kind
    return f"{name} of {walk.site.operator.name}-{walk.site.version}"
