"""One node before a run: its operator's text, evaluated on what is known of the inputs.

Statement by statement, as they are written: what is required is noted as a formula, and taken for granted behind it,
for a run that gets there has passed it. Behind a requirement that fails, none is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lark import Tree

from . import elements as el
from .evaluating import Axis, applied, axes, bound_to, evaluate, truth
from .formulas import Formula, Int, Poly, base_symbols, both, chosen, either, equal, floor_div, floor_mod, opposite
from .lists import VARIES, bare, either_list
from .operations import entries
from .schema import defaults
from .text import Node, Operator, Statement, TextError, trees
from .values import STEPS, Closure, Dead, Entries, Kind, Listed, Open, Refused, Run, Split, Tensor, Value

HEADER = -1
"""The position of what the header says of the inputs' shapes."""
Goal = Formula | Open
"""The outcome of a requirement, or why it is not derived."""


@dataclass(frozen=True, slots=True)
class Site:
    """A node: its operator, version, inputs by position (None: left out), attributes, and which outputs it has."""

    name: str
    operator: Operator
    version: int
    inputs: tuple[Value | None, ...]
    attributes: Mapping[str, Value | None]
    outputs: tuple[bool, ...]


def examine(site: Site, run: Run, judge: Callable[[int, Goal], None]) -> tuple[Value | Open, ...]:
    """The outcome of a node: values, or why they are open. judge: is told what the text requires, before that is taken
    for granted: the position of the statement, and what it comes to."""
    unranked = _unranked(site)
    if unranked:
        worst = next((v for v, _ in unranked if not v.on_data), unranked[0][0])
        reason = Open(worst.reason, worst.on_data)
        facts, path = run.facts, run.path
        if not any(sized for _, sized in unranked):  # the text may do without the sizes
            run.facts = facts.copy()
            _, stopped = _examined(site, run, lambda position, goal: None)
            run.facts, run.path = facts, path
            if stopped is None:
                return _examined(site, run, judge)[0]
        return _given_up(site, reason, judge)
    return _examined(site, run, judge)[0]


def _unranked(site: Site) -> list[tuple[Tensor, bool]]:
    """The inputs whose number of axes is open, and whether the text names their sizes."""
    ports = site.operator.inputs
    unranked = []
    for position, value in enumerate(site.inputs if ports else ()):
        port = ports[min(position, len(ports) - 1)]
        if isinstance(value, Tensor) and value.shape is None:
            unranked.append((value, port.shape is not None or port.mark == "*"))
    return unranked


def _examined(site: Site, run: Run, judge: Callable[[int, Goal], None]) -> tuple[tuple[Value | Open, ...], Open | None]:
    """The outcome of a node, and why nothing follows from some statement on, if that is so."""
    run.steps = STEPS
    asked: set[int] = set()

    def demanded(position: int, goal: Goal) -> None:
        asked.add(position)
        judge(position, goal)

    outputs: dict[str, Value] = {}
    env = opening(site)
    stopped: Open | None = None
    try:
        goal = bind(site.operator, env)
    except Dead:
        goal = False
    demanded(HEADER, goal)
    stopped = _passed(goal, run)
    for position in range(len(site.operator.statements)):
        if stopped is not None:
            break
        try:
            outcome = _statement(site, position, env, outputs, run)
        except Split as split:
            return _by_cases(site, position, split, env, outputs, run, demanded)
        if isinstance(outcome, _WithoutValue) and (
            outcome.refused
            or site.operator.statements[position].kind == "type_statement"
            or all(map(_sized, site.inputs))
        ):
            demanded(HEADER, False)
            stopped = _Failed(outcome.reason)
        elif isinstance(outcome, Open):
            stopped = outcome
        elif outcome is not None:
            demanded(position, outcome)
            if site.operator.statements[position].kind == "require":
                stopped = _passed(outcome, run)
    if stopped is not None and not isinstance(stopped, _Failed):
        for position in _demands(site.operator):
            if position not in asked:
                demanded(position, stopped)
    failed = isinstance(stopped, _Failed)
    return _results(site, env, outputs, stopped), None if failed else stopped


def _demands(operator: Operator) -> list[int]:
    """The positions of the statements that require something."""
    return [k for k, s in enumerate(operator.statements) if s.kind in ("require", "restrict")]


def _statement(
    site: Site, position: int, env: dict[str, Value], outputs: dict[str, Value], run: Run
) -> Formula | Open | None:
    """One statement: what it requires, or why nothing follows. Raises Split."""
    statement = site.operator.statements[position]
    try:
        if statement.kind in ("require", "restrict"):
            return truth(statement.tree.children[1], env, run)
        _perform(statement, site.operator, env, outputs, run)
    except Dead as dead:
        said = f"{_what(statement)} of {site.name} has no value"
        demands = statement.kind in ("require", "restrict")
        return Open(said) if demands else _WithoutValue(said, refused=isinstance(dead, Refused))
    except Split:
        raise
    except Open as problem:
        return Open(f"{_what(statement)} of {site.name}: {problem.reason}", problem.data)
    except TextError as problem:
        return Open(str(problem))
    except RecursionError:
        return Open("terms are nested too deep")
    return None


# ---- By cases -----------------------------------------------------------------------------------

LEAVES = 32
"""So many cases of one node are looked at."""


@dataclass(slots=True)
class _Leaf:
    """A case: what it assumes, what is required in it by position, and what it gives. stopped: why nothing follows."""

    case: Formula
    goals: dict[int, Goal]
    outputs: tuple[Value | Open, ...]
    stopped: Open | None


def _by_cases(
    site: Site,
    position: int,
    split: Split,
    env: Mapping[str, Value],
    outputs: Mapping[str, Value],
    run: Run,
    demanded: Callable[[int, Goal], None],
) -> tuple[tuple[Value | Open, ...], Open | None]:
    """The statements from a position on, where a condition that is not known decides what they are: both ways, each
    requirement as it is in the case that there is."""
    left = [LEAVES]
    leaves = list(_leaves(site, position, split, env, outputs, True, {}, run, left))
    for k in _demands(site.operator):
        if k < position:
            continue
        goals = [(leaf.case, leaf.goals[k]) for leaf in leaves if k in leaf.goals]
        if not goals:
            continue
        open_goal = next((goal for _, goal in goals if isinstance(goal, Open)), None)
        if open_goal is not None:
            demanded(k, open_goal)
            continue
        whole = both(*(either(opposite(case), goal) for case, goal in goals if not isinstance(goal, Open)))
        demanded(k, whole)
        if site.operator.statements[k].kind == "require" and _passed(whole, run) is not None:
            return (_Failed("a requirement fails"),) * len(site.outputs), None
    going = [leaf for leaf in leaves if not isinstance(leaf.stopped, _Failed) and run.decided(leaf.case) is not False]
    stopped = next((leaf.stopped for leaf in going if leaf.stopped is not None), None)
    values = tuple(_one_of([(leaf.case, leaf.outputs[k]) for leaf in going]) for k in range(len(site.outputs)))
    return values, stopped


def _leaves(
    site: Site,
    position: int,
    split: Split,
    env: Mapping[str, Value],
    outputs: Mapping[str, Value],
    case: Formula,
    goals: Mapping[int, Goal],
    run: Run,
    left: list[int],
) -> Iterator[_Leaf]:
    for condition in (split.condition, opposite(split.condition)):
        own = both(case, condition)
        if run.decided(own) is False:
            continue
        left[0] -= 1
        if left[0] < 0:
            raise_open = Open(f"{site.name}: {split.reason}", data=True)
            yield _Leaf(own, {**goals, **dict.fromkeys(_rest(site, goals, position), raise_open)},
                        (raise_open,) * len(site.outputs), raise_open)  # fmt: skip
            return
        kept, inside = run.path, run.inside
        run.path, run.inside = (*kept, condition), inside + 1
        yield from _leaf(site, position, dict(env), dict(outputs), own, dict(goals), run, left)
        run.path, run.inside = kept, inside


def _rest(site: Site, goals: Mapping[int, Goal], position: int) -> list[int]:
    return [k for k in _demands(site.operator) if k >= position and k not in goals]


def _leaf(
    site: Site,
    position: int,
    env: dict[str, Value],
    outputs: dict[str, Value],
    case: Formula,
    goals: dict[int, Goal],
    run: Run,
    left: list[int],
) -> Iterator[_Leaf]:
    stopped: Open | None = None
    for k in range(position, len(site.operator.statements)):
        try:
            outcome = _statement(site, k, env, outputs, run)
        except Split as split:
            yield from _leaves(site, k, split, env, outputs, case, goals, run, left)
            return
        if isinstance(outcome, Open):
            stopped = outcome
        elif outcome is not None:
            goals[k] = outcome
            if site.operator.statements[k].kind == "require":
                stopped = _passed(outcome, run)
        if stopped is not None:
            break
    if stopped is not None and not isinstance(stopped, _Failed):
        goals |= dict.fromkeys(_rest(site, goals, position), stopped)
    yield _Leaf(case, goals, _results(site, env, outputs, stopped), stopped)


def _one_of(cases: Sequence[tuple[Formula, Value | Open]]) -> Value | Open:
    """The content of an output that is one of several."""
    if not cases:
        return _Failed("a requirement fails")
    first = cases[-1][1]
    for case, value in reversed(cases[:-1]):
        if isinstance(first, Open) or isinstance(value, Open):
            return next(v for v in (value, first) if isinstance(v, Open))
        first = alternative(case, value, first)
    return first


def alternative(case: Formula, one: Value, other: Value) -> Value | Open:
    """The value that is the one where the case holds, else the other."""
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return either_list(case, one, other)
    kind = one.kind if one.kind == other.kind else ""
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        worst = next((v for v in (one, other) if v.shape is None and not v.on_data), None)
        reason = "data decide the number of axes" if worst is None else worst.reason
        return Tensor("", kind, None, reason=reason, on_data=worst is None)
    shape = tuple(a if a == b else chosen(case, a, b) for a, b in zip(one.shape, other.shape, strict=True))
    return Tensor("", kind, shape)


class _WithoutValue(Open):
    """Something that the text names has no value: for sizes and attributes that are known, the node is applied wrongly.

    refused: for any sizes.
    """

    def __init__(self, reason: str, *, refused: bool) -> None:
        super().__init__(reason)
        self.refused = refused


def _sized(value: object) -> bool:
    """Every size of a tensor is a number; an input that is left out counts as one."""
    return value is None or (
        isinstance(value, Tensor) and value.shape is not None and all(isinstance(n, int) for n in value.shape)
    )


class _Failed(Open):
    """Behind a requirement that fails there is nothing."""


def _given_up(site: Site, reason: Open, judge: Callable[[int, Goal], None]) -> tuple[Value | Open, ...]:
    """Of the outputs nothing but their types, where the text says that they are those of inputs."""
    for position in (HEADER, *_demands(site.operator)):
        judge(position, reason)
    kinds: dict[str, str] = {}
    for port, value in zip(site.operator.inputs, site.inputs, strict=False):
        if isinstance(value, Tensor) and value.kind:
            kinds.setdefault(port.type, value.kind)
    ports = site.operator.outputs
    values: list[Value | Open] = []
    for position in range(len(site.outputs)):
        kind = kinds.get(ports[min(position, len(ports) - 1)].type, "") if ports else ""
        values.append(Tensor("", kind, None, reason=reason.reason, on_data=reason.data) if kind else reason)
    return tuple(values)


def _what(statement: Statement) -> str:
    first = statement.tree.children[0]
    return statement.kind if isinstance(first, Tree) else str(first)


def _passed(goal: Formula, run: Run) -> Open | None:
    """Takes a requirement for granted; why nothing follows where it fails."""
    if run.decided(goal) is False:
        return _Failed("a requirement fails")
    if goal is not True:
        if run.inside:  # known where the body runs
            run.path = (*run.path, goal)
        else:
            run.facts.add(goal)
    return None


# ---- The names that a text starts with ----------------------------------------------------------


def opening(site: Site) -> dict[str, Value]:
    """The names of attributes, inputs and element types."""
    operator = site.operator
    env: dict[str, Value] = {}
    for name, default in site.attributes.items():
        env[f"given {name}"] = default is not None
        if default is not None:
            env[name] = default
    for position, port in enumerate(operator.inputs):
        if port.mark == "*":
            rest = tuple(v for v in site.inputs[position:] if v is not None)
            env[port.name] = rest
            env[f"given {port.name}"] = True
            _typed(env, port.type, rest[0] if rest else None)
        else:
            value = site.inputs[position] if position < len(site.inputs) else None
            env[f"given {port.name}"] = value is not None
            if value is not None:
                env[port.name] = value
                _typed(env, port.type, value)
    for position, port in enumerate(operator.outputs):
        env[f"given {port.name}"] = any(site.outputs[position : position + 1])
        if port.mark == "*":
            env[port.name] = (0,) * (len(site.outputs) - position)
    return env


def _typed(env: dict[str, Value], name: str, value: Value | None) -> None:
    kind = value.kind if isinstance(value, Tensor | Entries | Listed) else ""
    if kind and name not in env:
        env[name] = Kind(kind)


def bind(operator: Operator, env: dict[str, Value]) -> Formula:
    """The names of dimensions; the formula says that those which occur twice, and numerals, agree."""
    goals: list[Formula] = []
    for port in operator.inputs:
        source = env.get(port.name)
        if port.shape is None or not isinstance(source, Tensor):
            continue
        rest = list(source.shape or ())
        dots = sum(not isinstance(item, int) and item[1] for item in port.shape)
        spare = len(rest) - (len(port.shape) - dots)
        if spare < 0 or (spare and not dots):
            raise Dead
        for item in port.shape:
            if isinstance(item, int):
                goals.append(equal(rest.pop(0), item))
                continue
            name, many = item
            value: Value = tuple(rest[:spare]) if many else rest.pop(0)
            if many:
                del rest[:spare]
            if name in env:
                goals.append(_agree(env[name], value))
            else:
                env[name] = value
    return both(*goals)


def _agree(one: Value, other: Value) -> Formula:
    a, b = (v if isinstance(v, tuple) else (v,) for v in (one, other))
    if len(a) != len(b):
        raise Dead
    return both(*(equal(_size(x), _size(y)) for x, y in zip(a, b, strict=True)))


def _size(value: Value) -> Int:
    if isinstance(value, bool) or not isinstance(value, int | Poly):
        raise Dead
    return value


# ---- Statements ---------------------------------------------------------------------------------


def _perform(
    statement: Statement, operator: Operator, env: dict[str, Value], outputs: dict[str, Value], run: Run
) -> None:
    kids = statement.tree.children
    name = str(kids[0])
    match statement.kind:
        case "alias":
            _let([str(k) for k in kids[:-1]], kids[-1], env, run)
        case "function":
            parameters = tuple(str(p.children[0]) for p in trees(kids[1])) if isinstance(kids[1], Tree) else ()
            env[name] = Closure(parameters, _node(kids[2]), dict(env))
        case "type_statement":
            env[name] = evaluate(kids[1], env, run)
        case "view":
            env[name] = _tensor(name, "", axes(kids[1], env, run), kids[2], env, run)
        case "along":
            _along(_node(statement.tree), env, run)
        case "equation":
            kind = _kind_of_output(operator, name, env)
            outputs[name] = _tensor(name, kind, axes(kids[1], env, run), kids[2], env, run)
        case "each":
            kind = _kind_of_output(operator, name, env)
            made = []
            for k in range(len(entries(env[name]))):
                inner = {**env, str(kids[1]): k}
                made.append(_tensor(name, kind, axes(kids[2], inner, run), kids[3], inner, run))
            outputs[name] = tuple(made)
        case "entries":
            outputs[name] = _sequence(name, operator, kids[1:], env, run)
        case "whole":
            outputs[name] = evaluate(kids[1], env, run)
        case _:
            raise Open("the meaning is a rule of the machine")


ENTRIES = 32
"""The entries of a sequence that a text makes are told apart up to so many."""


def _sequence(name: str, operator: Operator, kids: Sequence[object], env: Mapping[str, Value], run: Run) -> Value:
    """A sequence by the elements of its entries: a few one by one, else what any of them is like."""
    place, within, body = kids
    (steps,) = axes(_node(place), env, run)
    ((position,), (length,)) = steps.names, steps.sizes
    sequence = _kind_of_output(operator, name, env)
    kind = sequence.removeprefix("seq(").removesuffix(")")
    key, _, element = kind.removeprefix("map(").partition(",")
    pair = _node(body).data == "pair"
    sides = list(zip((key, element.removesuffix(")")), _node(body).children, strict=True)) if pair else [(kind, body)]

    def entry(k: Int) -> list[Tensor]:
        inner = {**env, position: k}
        ranges = axes(_node(within), inner, run) if within is not None else ()
        return [_tensor(name, its, ranges, side, inner, run) for its, side in sides]

    def one(row: Sequence[Value]) -> Value:
        return Entries.of(kind, tuple(row)) if pair else row[0]

    if isinstance(length, int) and length <= ENTRIES:
        return tuple(one(entry(k)) for k in range(length))
    start = run.fresh
    row = entry(run.symbol("data", "position", 0))
    sizes = ((VARIES if _made_behind(start, size) else size for size in item.shape or ()) for item in row)
    forms = [Tensor("", item.kind, tuple(shape)) for item, shape in zip(row, sizes, strict=True)]
    return Listed(sequence, length, (one(forms),))


def _made_behind(start: int, size: Int) -> bool:
    """A size is about a name that is younger than the first so many."""
    made = [re.search(r"#(\d+)$", symbol.key) for symbol in base_symbols(size)]
    return any(it is not None and int(it[1]) > start for it in made)


def _node(part: object) -> Node:
    if isinstance(part, Tree):
        return part
    raise TextError("a tree was expected")


def _let(names: Sequence[str], tree: object, env: dict[str, Value], run: Run) -> None:
    expression = _node(tree)
    if len(names) == 1:
        env[names[0]] = evaluate(expression, env, run)
        return
    values = (
        applied(expression.children, env, run)
        if expression.data == "apply"
        else entries(evaluate(expression, env, run))
    )
    if len(values) < len(names):
        raise Dead
    env |= dict(zip(names, values, strict=False))


def _kind_of_output(operator: Operator, name: str, env: Mapping[str, Value]) -> str:
    port = next(p for p in operator.outputs if p.name == name)
    kind = env.get(port.type)
    if isinstance(kind, Kind):
        return kind.name
    return port.type if port.type in el.TYPES else ""


def _tensor(name: str, kind: str, ranges: Sequence[Axis], body: object, env: Mapping[str, Value], run: Run) -> Tensor:
    """The tensor that ranges and an expression over them define; its elements are evaluated when they are read."""
    shape = tuple(n for axis in ranges for n in axis.shape)
    run.fresh += 1

    def element(index: tuple[Int, ...]) -> Value:
        value = evaluate(_node(body), {**env, **bound_to(ranges, _split(ranges, index, run))}, run)
        if not kind or isinstance(value, tuple):
            return value
        return el.as_element(kind, value)

    return Tensor(f"{name}#{run.fresh}", kind, shape, element)


def _split(ranges: Sequence[Axis], index: Sequence[Int], run: Run) -> list[Int]:
    """An index with the parts of axes that are split into several."""
    parts: list[Int] = []
    rest = list(index)
    for axis in ranges:
        if axis.dots or len(axis.names) == 1:
            parts += rest[: len(axis.sizes)]
            rest = rest[len(axis.sizes) :]
            continue
        place, own = rest.pop(0), []
        for size in reversed(axis.sizes[1:]):
            if size == 0:
                raise Dead
            own.append(floor_mod(place, size))
            place = floor_div(place, size)
        parts += [place, *reversed(own)]
    return parts


def _along(tree: Node, env: dict[str, Value], run: Run) -> None:
    """Views that read each other at earlier steps."""
    inner = env
    for view in trees(tree)[1:]:
        name, ranges, body = view.children
        inner[str(name)] = _tensor(str(name), "", axes(ranges, inner, run), body, inner, run)


# ---- What a node gives --------------------------------------------------------------------------


def _results(
    site: Site, env: Mapping[str, Value], outputs: Mapping[str, Value], stopped: Open | None
) -> tuple[Value | Open, ...]:
    reason = stopped or Open(f"{site.name} does not say")
    values: list[Value | Open] = []
    for port in site.operator.outputs:
        value = outputs.get(port.name)
        kind = env.get(port.type)
        listed = list(value) if port.mark == "*" and isinstance(value, tuple) else [value]
        for item in listed:
            if isinstance(item, tuple) and not isinstance(item, Entries):
                item = Entries.of(kind.name if isinstance(kind, Kind) else "", item)
            values.append(reason if item is None else bare(item) if isinstance(item, Entries | Listed) else item)
    return tuple(values[k] if k < len(values) else reason for k in range(len(site.outputs)))


# ---- Composition --------------------------------------------------------------------------------


def compose(
    name: str, version: int, inputs: Sequence[Value | None], attributes: Mapping[str, Value], run: Run
) -> tuple[Value, ...]:
    """The outputs of an operator that another one's text applies. What it requires, the text sees to."""
    operator = run.library.operator(name, version)
    if operator is None:
        raise Open(f"there is no text of {name}-{version}")
    stated = {**defaults(operator, version), **attributes}
    site = Site(name, operator, version, tuple(inputs), stated, (True,) * len(operator.outputs))
    env = opening(site)
    outputs: dict[str, Value] = {}
    bind(operator, env)
    for statement in operator.statements:
        if statement.kind == "require":
            if truth(statement.tree.children[1], env, run) is False:
                raise Dead
        elif statement.kind != "restrict":
            _perform(statement, operator, env, outputs, run)
    values: list[Value] = []
    for port in operator.outputs:
        value = outputs.get(port.name)
        if port.mark == "*" and isinstance(value, tuple):
            values += value
        elif value is not None:
            values.append(value)
    return tuple(values)
