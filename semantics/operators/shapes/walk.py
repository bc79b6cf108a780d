"""A whole model before it runs: every node in an order in which it could run, with what is known by then.

What a node requires is taken for granted behind it: a run that gets there has passed it. So a requirement that fails
is one where the machine would get stuck first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.library import specification

from ...errors import ModelError, Unsupported
from ...formulas.terms import FALSE, TRUE, Term, weight
from ...model.graph import GraphId, Model, Node, NodeId, TensorId, ValueType
from ...model.path import quote
from ...model.schemas import normal_domain, schema_at
from ...model.stored import array_of
from ...resources.process import OutOfBudget
from ..application import Program, initializers
from ..symbolic import numbers
from ..symbolic.elements.known import MOST, Number
from ..symbolic.elements.opaque import Read
from ..symbolic.numbers import Int, at_most, both, definitions, either, equal, opposite
from ..symbolic.statements import type_name
from ..symbolic.values import VARIES, conjuncts
from . import contents
from .contents import (
    DECLARED,
    HEADER,
    HERE,
    LARGE,
    SIZED,
    STEP,
    TYPED,
    Content,
    Examined,
    Facts,
    Items,
    Possible,
    Site,
    Symbols,
    entries_of,
    held_one,
    joined,
    mentioned,
)
from .node import branches, examine, requirements

# ---- Knowledge: the notes of a walk over the nodes ---------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenRequirement:
    """A requirement at a node that is not simply true. position: as in `node.Demand`. path: what is known to hold where
    the node runs at all. facts: what holds there in any case. symbols: of its own. made: where there is no goal, the
    node that gives the tensor of which data decide the number of axes; None where the goal is open for another reason.
    tensor: whose declared shape it is. only_fails: it counts where it fails, whatever the data; another instance, for
    any run, says the rest.
    """

    node: NodeId
    operator: CoreOperator
    position: int
    goal: Term | None
    path: Facts = ()
    facts: Facts = ()
    symbols: Symbols = field(default_factory=dict)
    reason: str = ""
    about: Term | None = None
    made: NodeId | None = None
    tensor: TensorId | None = None
    only_fails: bool = False

    @property
    def required(self) -> bool:
        """True if the operator is undefined where the requirement fails; a restriction only narrows its use."""
        return self.position < 0 or self.operator.statements[self.position].kind == "require"


@dataclass(frozen=True, slots=True)
class Stated:
    """The declaration of a tensor that a node gives, beside what the text gives: the element types, or the
    sizes; a size that the declaration leaves open is None."""

    node: NodeId
    tensor: TensorId
    given: str | tuple[Int, ...]
    declared: str | tuple[Int | None, ...]


@dataclass(slots=True)
class Examination:
    """The knowledge of a model before it runs.

    instances: the requirements that are not simply true, in the order in which the nodes can run. met: for each
    requirement (definition and position) the nodes that meet it by numbers alone. undefined: the nodes whose operator
    the specification does not define. misused: the nodes that give their operator what it cannot read, and what that
    is. skipped: the nodes that never run. sizes: the symbolic sizes of the inputs, with what they are called, limits:
    which values they have. contents: by tensor. makers: for each symbol that is not a size of an input, and that the
    size of a tensor mentions, the first node that gives such a tensor. order: of the nodes, one with bodies behind
    those in them. variables: sizes that all runs of a body are to have, with their names. stated: what the model
    declares of tensors beside what the texts give.
    """

    model: Model
    instances: list[OpenRequirement] = field(default_factory=list)
    met: dict[tuple[CoreOperator, int], list[NodeId]] = field(default_factory=dict)
    undefined: list[NodeId] = field(default_factory=list)
    misused: dict[NodeId, str] = field(default_factory=dict)
    skipped: list[NodeId] = field(default_factory=list)
    sizes: dict[str, str] = field(default_factory=dict)
    symbols: dict[str, tuple[int, str]] = field(default_factory=dict)
    facts: dict[Term, None] = field(default_factory=dict)
    contents: dict[TensorId, Content] = field(default_factory=dict)
    limits: Facts = ()
    makers: dict[str, NodeId] = field(default_factory=dict)
    order: dict[NodeId, int] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    stated: dict[Stated, None] = field(default_factory=dict)


@dataclass(slots=True)
class Walk:
    """An examination that goes on.

    follow: examines a graph, `walk.graph`; a node that holds graphs asks for that. remembered: what an examination
    gave, by what it depends on. The keys hold ids of texts and arrays; the sites keep those alive, so that no id
    means another one later. dimensions: what the dimension variables of the model stand for, each with the function
    call within which it is known. stated: the types that the model states of tensors, each with where its dimension
    variables are known.
    """

    program: Program
    possible: Possible
    known: Examination
    follow: Callable[[Walk, GraphId], None]
    path: Facts = ()
    silent: int = 0
    remembered: dict[Hashable, tuple[Examined, Site]] = field(default_factory=dict)
    dimensions: dict[tuple[str, str], Int] = field(default_factory=dict)
    stated: Mapping[TensorId, Sequence[tuple[str, ValueType]]] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        """G."""
        return self.program.model


@contextmanager
def under(walk: Walk, *conditions: Term) -> Iterator[None]:
    """The walk in a place that a run reaches only where these conditions hold too."""
    kept, walk.path = walk.path, (*walk.path, *conditions)
    try:
        yield
    finally:
        walk.path = kept


def definition(walk: Walk, n: NodeId) -> CoreOperator | None:
    """The text of a node's operator."""
    version = walk.model.nodes[n].version
    return None if version is None else specification().meanings.at(walk.program.operators[n], version)


def settle(walk: Walk, n: NodeId, t: TensorId, content: Content) -> None:
    """Sets what is known of a tensor from now on; of an open shape what the model declares, which is taken for true
    there.

    A shape of which data decide the number of axes is an obligation on its node: to be as declared.
    """
    content = replace(content, made=n) if content.made == HERE else content
    compared(walk, n, t, content)
    _sized(walk, n, t, content.shape)
    for around, declared in walk.stated.get(t, ()) if _is_open(content) else ():
        if declared.kind != "tensor" or declared.shape is None or content.shape is not None:
            continue
        operator = definition(walk, n)
        if content.made is not None and operator is not None and not walk.silent:
            said = f"that {walk.model.tensors[t].path} has the shape {_spelled(declared.shape)}, as declared"
            walk.known.instances.append(OpenRequirement(n, operator, DECLARED, None, walk.path, reason=said, made=n))
        shape = tuple(_dimension(walk, n, t, axis, size, around) for axis, size in enumerate(declared.shape))
        content = replace(content, element=content.element or declared.element, shape=shape)
    stated = next((type_.element for _, type_ in walk.stated.get(t, ()) if type_.kind == "tensor"), "")
    walk.known.contents[t] = replace(content, name=f"t{t}", element=content.element or stated)
    for size in content.shape or (() if content.items is None else (content.items.length,)):
        for name in mentioned(size) if isinstance(size, Term) else ():
            if name in walk.known.symbols and name not in walk.known.sizes:
                walk.known.makers.setdefault(name, n)


def _is_open(content: Content) -> bool:
    """True if the number of axes of a tensor is not known."""
    return content.shape is None and content.items is None and not content.dead


def compared(walk: Walk, n: NodeId, t: TensorId, content: Content) -> None:
    """Note whether a tensor that node n gives a value to has the shape and the element type that the model declares."""
    for around, declared in walk.stated.get(t, ()):
        if declared.kind == "tensor":
            _typed(walk, n, t, content, declared)
            if declared.shape is not None and content.shape is not None:
                _compare(walk, n, t, content.shape, declared.shape, around)


def _sized(walk: Walk, n: NodeId, t: TensorId, shape: tuple[Int, ...] | None) -> None:
    """Note a tensor that is larger than what is examined here, whatever data and open sizes are."""
    if walk.silent or shape is None:
        return
    fixed = [size for size in shape if isinstance(size, int)]
    large = max(fixed, default=0) >= MOST or (len(fixed) == len(shape) and prod(fixed) >= MOST)
    if large and (operator := definition(walk, n)) is not None:
        shown = _spelled(tuple(size if isinstance(size, int) else None for size in shape))
        said = f"{walk.model.tensors[t].path} has the shape {shown}"
        walk.known.instances.append(OpenRequirement(n, operator, SIZED, FALSE, reason=said))


def _spelled(shape: tuple[int | str | None, ...]) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _dimension(walk: Walk, n: NodeId, t: TensorId, axis: int, size: int | str | None, around: str) -> Int:
    """The size that a declaration states."""
    if isinstance(size, int) and size >= 0:
        return size
    known = walk.dimensions.get((around, size)) if isinstance(size, str) and size else None
    if known is None:
        known = free(walk, f"t{t}.size.{axis}")
        if isinstance(size, str) and size:
            walk.dimensions[around, size] = known
    return known


def _compare(
    walk: Walk, n: NodeId, t: TensorId, shape: tuple[Int, ...], declared: tuple[int | str | None, ...], around: str
) -> None:
    """Note whether an output can have the shape that the model declares.

    A dimension variable is one size wherever it occurs ("Currently, dimension variables are not scoped", ONNX 1.23.2,
    IR.md, Static tensor shapes), and stands for the first size that has this name.
    """
    operator = definition(walk, n)
    if walk.silent or operator is None:
        return
    parts = [] if len(shape) == len(declared) else [FALSE]
    sizes: list[Int | None] = [size if isinstance(size, int) and size >= 0 else None for size in declared]
    for axis, (ours, stated) in enumerate(zip(shape, declared, strict=False)):
        if isinstance(stated, str) and stated:
            sizes[axis] = _variable(walk, t, (around, stated), ours)
        if (size := sizes[axis]) is not None:
            parts.append(equal(ours, size))
    goal = both(*parts)
    walk.known.stated.setdefault(Stated(n, t, shape, tuple(sizes)))
    if goal == TRUE:
        walk.known.met.setdefault((operator, DECLARED), []).append(n)
    else:
        facts, symbols = tuple(walk.known.facts), dict(walk.known.symbols)
        path = () if goal == FALSE else walk.path
        walk.known.instances.append(OpenRequirement(n, operator, DECLARED, goal, path, facts, symbols, tensor=t))


def _variable(walk: Walk, t: TensorId, name: tuple[str, str], size: Int) -> Int:
    """The meaning of a dimension variable: at its first place the size of tensor t that has this name, or, where that
    differs from run to run of a body, one size that all runs are to have.
    """
    known = walk.dimensions.get(name)
    if known is None:
        known = size
        if isinstance(size, Term) and any(varies(walk, n, size) for n in _repeating(walk, t)):
            known = free(walk, f"variable.{len(walk.known.variables)}")
            walk.known.variables[known.op] = name[1]
        walk.dimensions[name] = known
    return known


def _repeating(walk: Walk, t: TensorId) -> Iterator[NodeId]:
    """The nodes in a body of which a tensor is, and that run it again and again."""
    around = walk.model.tensors[t].graph
    while (holder := walk.model.graphs[around].holder) is not None:
        if walk.model.nodes[holder].op_type != "If":
            yield holder
        around = walk.model.nodes[holder].graph


def varies(walk: Walk, n: NodeId, size: Term) -> bool:
    """True if a size can differ from run to run: it depends on a symbol that belongs to a body of the node."""
    defined = definitions(walk.known.facts)
    waiting, seen = [size], set()
    while waiting:
        for name in mentioned(waiting.pop()):
            if name in seen or name not in walk.known.symbols:
                continue
            seen.add(name)
            if name in defined:
                waiting.append(defined[name])
            elif belongs(walk, n, name):
                return True
    return False


def belongs(walk: Walk, n: NodeId, symbol: str) -> bool:
    """True if a symbol belongs to a tensor or node of a body of a node, or to the number of its run."""
    match = re.match(r"([tn])(\d+)\.", symbol)
    if match is None:
        return False
    number = int(match[2])
    if match[1] == "n" and number == n:
        return True
    around = walk.model.tensors[number].graph if match[1] == "t" else walk.model.nodes[number].graph
    while (holder := walk.model.graphs[around].holder) is not None:
        if holder == n:
            return True
        around = walk.model.nodes[holder].graph
    return False


def _typed(walk: Walk, n: NodeId, t: TensorId, content: Content, declared: ValueType) -> None:
    """Note whether the declared element type is the one that the node gives."""
    operator = definition(walk, n)
    if walk.silent or operator is None or not content.element or not declared.element:
        return
    walk.known.stated.setdefault(Stated(n, t, content.element, declared.element))
    if content.element == declared.element:
        walk.known.met.setdefault((operator, TYPED), []).append(n)
    else:
        said = f"it gives {content.element}, declared is {declared.element}"
        walk.known.instances.append(OpenRequirement(n, operator, TYPED, FALSE, reason=said))


def free(walk: Walk, name: str) -> Term:
    """A size that data decide."""
    walk.known.symbols[name] = (0, "Int")
    walk.known.facts[at_most(0, Term(name))] = None
    return Term(name)


def named(walk: Walk, number: Int, name: str) -> Int:
    """A number as a small term: a symbol that a fact defines where it has alternatives or is long."""
    if not isinstance(number, Term) or (weight(number) <= LARGE and not branches(number)):
        return number
    walk.known.symbols[name] = (0, "Int")
    walk.known.facts[Term("=", (Term(name), number))] = None
    return Term(name)


def asked(walk: Walk, n: NodeId, goal: Term, contents: Sequence[Content | None], failed: str = "") -> None:
    """Note what the rule of a node that holds graphs asks of tensors, and take it for granted behind it. failed: what
    is wrong where it can never be met."""
    operator = definition(walk, n)
    if any(content is not None and content.dead for content in contents):
        return
    opened = next((content for content in contents if content is not None and content.shape is None), None)
    if operator is not None and not walk.silent:
        if opened is not None:
            made = n if opened.made == HERE else opened.made
            walk.known.instances.append(
                OpenRequirement(n, operator, STEP, None, walk.path, reason=opened.reason, made=made)
            )
        elif goal == TRUE:
            walk.known.met.setdefault((operator, STEP), []).append(n)
        else:
            facts = tuple(walk.known.facts)
            symbols, reason = dict(walk.known.symbols), failed if goal == FALSE else ""
            walk.known.instances.append(OpenRequirement(n, operator, STEP, goal, walk.path, facts, symbols, reason))
    if opened is None and goal not in (TRUE, FALSE):
        walk.known.facts[either(*map(opposite, walk.path), goal)] = None


def unknown(walk: Walk, n: NodeId, reason: str) -> None:
    """Nothing is known of the outputs of a node but what the model declares."""
    for t in walk.model.nodes[n].outputs:
        if t is not None:
            settle(walk, n, t, Content("", "", None, reason=reason))


def unexamined(walk: Walk, graph_id: GraphId, reason: str) -> None:
    """Note the requirements of the nodes of a graph, and of the bodies in it, as open."""
    for n in walk.model.graphs[graph_id].nodes:
        operator = definition(walk, n)
        if operator is not None and not walk.silent:
            positions = (HEADER, *requirements(operator))
            walk.known.instances += [OpenRequirement(n, operator, k, None, walk.path, reason=reason) for k in positions]
        for _, body in walk.model.nodes[n].bodies:
            unexamined(walk, body, reason)


# ---- Operators that hold graphs: their bodies with what is known of the tensors that come in ---
#
# A body of If is examined under its condition, its outputs are the one or the other. A body that runs again and again
# is examined once, for any run: what Loop and Scan carry is assumed to have the sizes with which it comes in, and must
# be shown to have them after a run (induction over the runs). A size for which that fails is open, one for each run.
# What is known of a run is not known of the outputs, which are the values after the last one; nor does anything that a
# body needs hold outside, unless the body runs. Where it is known that a Loop runs, its first runs are examined one by
# one too: all of them, then nothing is open, or as many as RUNS, and what fails in one of them is violated.

RUNS = 32
"""So many runs of a Loop are examined one by one."""
WORK = 200
"""Not more nodes than this are examined for that."""


def _bodies(walk: Walk, n: NodeId) -> Mapping[str, GraphId]:
    return dict(walk.model.nodes[n].bodies)


def _input(walk: Walk, n: NodeId, position: int) -> Content | None:
    row = walk.model.nodes[n].inputs
    t = row[position] if position < len(row) else None
    return None if t is None else walk.known.contents.get(t, _lost(t))


def _outputs(walk: Walk, body: GraphId) -> list[Content]:
    return [walk.known.contents.get(t, _lost(t)) for t in walk.model.graphs[body].outputs]


def _lost(t: TensorId) -> Content:
    return Content(f"t{t}", "", None, reason="it has no value")


GIVEN_BACK = "the condition that the body gives has not one element"


def _one(content: Content | None) -> Term:
    """That a tensor, if it is there, has one element."""
    if content is None:
        return TRUE
    count: numbers.Int = 1
    for size in content.shape or ():
        count = numbers.multiply(count, size)
    return numbers.equal(count, 1)


_READ = {"Bool": "bool", "Int": "int64"}
"""The element types of what the rules of part 3 read: a condition, a number of runs."""


def _value(walk: Walk, content: Content | None, sort: str) -> numbers.Int | None:
    """The one element of a tensor: a number, or the term that stands for it; None for a tensor that is absent, or has
    another type than the rule reads."""
    if content is None or content.shape is None or content.element not in ("", _READ[sort]):
        return None
    if content.data is not None and content.data.size == 1:
        return int(content.data.reshape(-1)[0])
    if content.entries is not None and len(content.entries) == 1:
        match content.entries[0]:
            case Term() as known:
                return known
            case Read(stem, index):
                walk.known.symbols[f"{stem}.{sort}"] = (len(index), sort)
                return Term(f"{stem}.{sort}", index)
    name = f"{content.name}.{sort}"
    walk.known.symbols[name] = (len(content.shape), sort)
    return Term(name, (0,) * len(content.shape))


def _truth(value: numbers.Int | None) -> Term | None:
    return value if isinstance(value, Term) or value is None else TRUE if value else FALSE


# ---- If ---------------------------------------------------------------------------------------


def _if(walk: Walk, n: NodeId) -> None:
    bodies = _bodies(walk, n)
    given = _input(walk, n, 0)
    asked(walk, n, _one(given), [given], "the condition has not one element")
    condition = _truth(_value(walk, given, "Bool"))
    if condition is None:
        name = f"n{n}.condition"
        walk.known.symbols[name] = (0, "Bool")
        condition = Term(name)
    results: list[tuple[Term, list[Content]]] = []
    for name, holds in (("then_branch", condition), ("else_branch", numbers.opposite(condition))):
        if name not in bodies or holds == FALSE:
            continue
        with under(walk, *([holds] if holds != TRUE else [])):
            walk.follow(walk, bodies[name])
        results.append((holds, _outputs(walk, bodies[name])))
    for position, t in enumerate(walk.model.nodes[n].outputs):
        if t is None:
            continue
        cases = [(holds, row[position]) for holds, row in results if position < len(row)]
        settle(walk, n, t, _either(walk, t, cases) if cases else _lost(t))


def _either(walk: Walk, t: TensorId, cases: Sequence[tuple[Term, Content]]) -> Content:
    """The knowledge of a tensor that is one or the other."""
    return joined(cases, lambda number, part: named(walk, number, f"t{t}.{part}"))


# ---- Bodies that run again and again ----------------------------------------------------------


def _repeated(
    walk: Walk,
    body: GraphId,
    fixed: Mapping[TensorId, Content],
    carried: Mapping[TensorId, Content],
    back: Sequence[TensorId],
) -> None:
    """A body whose inputs `carried` get, after each run, what the outputs `back` of the body are.

    Each pass examines the body with what is assumed of the carried values and makes open what a run does not keep, so
    that passes end: the last one shows what it assumes.
    """
    assumed = dict(carried)
    walk.silent += 1
    try:
        while True:
            examination = walk.known
            kept = dict(examination.facts), dict(examination.makers), dict(examination.order), dict(walk.remembered)
            _enter(walk, body, {**fixed, **assumed})
            after = [examination.contents.get(source, _lost(source)) for source in back]
            examination.facts, examination.makers, examination.order, walk.remembered = (
                kept  # what holds of this pass's assumptions
            )
            changed = False
            for (t, before), then in zip(list(assumed.items()), after, strict=False):
                general = _general(walk, t, before, then)
                if general != before:
                    assumed[t], changed = general, True
            if not changed:
                break
    finally:
        walk.silent -= 1
    _enter(walk, body, {**fixed, **assumed})


def _enter(walk: Walk, body: GraphId, given: Mapping[TensorId, Content]) -> None:
    for t, content in given.items():
        walk.known.contents[t] = replace(content, name=f"t{t}")
        compared(walk, walk.model.graphs[body].holder or 0, t, content)
    walk.follow(walk, body)


def _general(walk: Walk, t: TensorId, before: Content, after: Content) -> Content:
    """The knowledge of a carried value that holds before and after a run."""
    if after.dead or before.dead:
        return before
    element = before.element if before.element == after.element else ""
    if before.items is not None or after.items is not None:
        return _general_list(walk, t, before, after)
    if before.shape is None:
        return replace(before, element=element)
    if after.shape is None:
        return Content(f"t{t}", element, None, reason=after.reason, made=after.made)
    if len(before.shape) != len(after.shape):
        said = "the number of axes changes from run to run"
        return Content(f"t{t}", element, None, reason=said, made=walk.model.graphs[walk.model.tensors[t].graph].holder)
    shape = tuple(
        a if a == b else free(walk, f"t{t}.size.{axis}")
        for axis, (a, b) in enumerate(zip(before.shape, after.shape, strict=True))
    )
    return Content(f"t{t}", element, shape)


def _general_list(walk: Walk, t: TensorId, before: Content, after: Content, name: str = "length") -> Content:
    """The same for a carried sequence or optional: its entries are like those before or those of a run. name: of its
    length.
    """
    optional = next((c.element for c in (before, after) if c.element.startswith("optional_")), "")
    if optional:
        before, after = (c if c.element.startswith("optional_") else held_one(c, optional) for c in (before, after))
    if before.items is None or after.items is None or before.element != after.element:
        return Content(f"t{t}", "", None, reason="a value of one type or another")
    if before.items == after.items:
        return before
    length = before.items.length
    if length != after.items.length:
        length = free(walk, f"t{t}.{name}")
    forms: list[Content] = []
    for row in (before.items, after.items):
        for form in row.like if row.entries is None else row.entries:
            _add_form(walk, t, forms, form, name)
    return Content(f"t{t}", before.element, None, items=Items(length, None, tuple(forms)))


def _add_form(walk: Walk, t: TensorId, forms: list[Content], form: Content, name: str = "length") -> None:
    """Add what an entry can be like: one form for each number of axes, so that there are finitely many."""
    holder = walk.model.graphs[walk.model.tensors[t].graph].holder
    if form.shape is not None and holder is not None:
        own = tuple(VARIES if isinstance(n, Term) and varies(walk, holder, n) else n for n in form.shape)
        form = Content("", form.element, own)
    for k, other in enumerate(forms):
        if other == form:
            return
        if other.shape is not None and form.shape is not None and len(other.shape) == len(form.shape):
            shape = tuple(a if a == b else VARIES for a, b in zip(other.shape, form.shape, strict=True))
            forms[k] = Content("", other.element if other.element == form.element else "", shape)
            return
        if other.shape is None and form.shape is None and other.items is None and form.items is None:
            return
        if other.items is not None and form.items is not None:
            general = _general_list(walk, t, other, form, f"inner.{name}")
            forms[k] = replace(general, name=other.name)
            return
    forms.append(form)


def _carried(t: TensorId, content: Content) -> Content:
    """The knowledge of a carried value at the beginning of any run: nothing of its elements."""
    return replace(content, name=f"t{t}", entries=None, data=None, law=None)


def _final(walk: Walk, n: NodeId, output: TensorId, state: Content) -> None:
    """The value after the last run: sizes that differ from run to run are those of no run that began."""
    shape = state.shape
    if shape is not None:
        own = f"{state.name}.size."
        shape = tuple(
            free(walk, f"t{output}.size.{axis}") if isinstance(size, Term) and size.op.startswith(own) else size
            for axis, size in enumerate(shape)
        )
    settle(walk, n, output, replace(state, shape=shape, entries=None, data=None, law=None))


def _loop(walk: Walk, n: NodeId) -> None:
    node, body = walk.model.nodes[n], _bodies(walk, n).get("body")
    if body is None:
        return unknown(walk, n, "the node has no body")
    inner = walk.model.graphs[body]
    limit, going = _input(walk, n, 0), _input(walk, n, 1)
    asked(walk, n, numbers.both(_one(limit), _one(going)), [limit, going], "M or cond has not one element")
    trips = _value(walk, limit, "Int")
    begins = TRUE if going is None else _truth(_value(walk, going, "Bool"))
    initial = [_input(walk, n, position) or _absent() for position in range(2, len(inner.inputs))]
    first = going or Content("", "bool", (), None, np.array(True))
    if begins == TRUE and isinstance(trips, int) and trips > 0:
        done = _one_by_one(walk, n, body, trips, first, initial, ends=going is not None)
        if done is not None:
            return _unrolled(walk, n, len(initial), done)
    number = free(walk, f"n{n}.run")
    runs = _runs(walk, n, number, trips, begins)
    fixed = {t: Content(f"t{t}", "int64", (), (number,)) for t in inner.inputs[:1]}
    carried = {t: _carried(t, going or Content("", "bool", ())) for t in inner.inputs[1:2]}
    carried |= {t: _carried(t, content) for t, content in zip(inner.inputs[2:], initial, strict=True)}
    with under(walk, *runs):
        _repeated(walk, body, fixed, carried, inner.outputs)
        results = _outputs(walk, body)
        if going is not None and results:
            asked(walk, n, _one(results[0]), results[:1], GIVEN_BACK)
    surely = runs == ()
    for position, output in enumerate(node.outputs):
        if output is None:
            continue
        if position + 1 >= len(results):
            settle(walk, n, output, _lost(output))
        elif 2 + position < len(inner.inputs):
            _final(walk, n, output, walk.known.contents[inner.inputs[2 + position]])
        else:
            count = _count(walk, output, trips, surely=surely, ended=going is not None)
            _stacked(walk, n, output, inner.outputs[position + 1], count, 0, runs)
    return None


def _absent() -> Content:
    return Content("", "", None, reason="the loop carries no value here")


def _one_by_one(
    walk: Walk, n: NodeId, body: GraphId, trips: int, condition: Content, initial: Sequence[Content], *, ends: bool
) -> list[list[Content]] | None:
    """The results of each run of a Loop, where all of them are examined; None where there are more, or it is not known
    how many: then what fails in the first ones is noted nevertheless. ends: the condition may end the Loop.
    """
    inner, examination = walk.model.graphs[body], walk.known
    rows: list[list[Content]] = []
    noted, examination.instances = examination.instances, []
    going: bool | None = True
    state = [condition, *initial]
    while going and len(rows) < min(trips, RUNS) and (len(rows) + 1) * len(inner.nodes) <= WORK:
        kept = dict(examination.facts), dict(examination.makers), dict(examination.order), dict(walk.remembered)
        number = Content("", "int64", (), None, np.array(len(rows), np.int64))
        _enter(walk, body, dict(zip(inner.inputs, [number, *state], strict=False)))
        results = _outputs(walk, body)
        if ends and results:
            asked(walk, n, _one(results[0]), results[:1], GIVEN_BACK)
        told = [_told(walk, n, content) for content in results]
        examination.facts, examination.makers, examination.order, walk.remembered = kept
        made = [_kept(walk, n, t, content, len(rows)) for t, content in zip(inner.outputs, told, strict=True)]
        rows.append(made)
        state = made[: len(state)]
        going = None if not made else True if not ends else _known_truth(made[0])
    complete = going is False or (going and len(rows) == trips)
    extra, examination.instances = examination.instances, noted
    examination.instances += extra if complete else [replace(instance, only_fails=True) for instance in extra]
    return rows if complete else None


def _known_truth(content: Content) -> bool | None:
    row = entries_of(content)
    return bool(row[0]) if row is not None and len(row) == 1 and isinstance(row[0], int) else None


def _told(walk: Walk, n: NodeId, content: Content) -> Content:
    """The content in terms of what is there outside of the body, as far as that goes."""
    defined = numbers.definitions(walk.known.facts)

    def outside(number: numbers.Int) -> numbers.Int:
        for _ in range(len(defined)):
            inside = [name for name in mentioned(number) if name in defined] if isinstance(number, Term) else []
            if not inside:
                break
            for name in inside:
                number = numbers.substitute_term(number, Term(name), defined[name])
        return number

    shape = None if content.shape is None else tuple(map(outside, content.shape))
    entries = content.entries
    if entries is not None:
        entries = tuple(
            outside(item) if isinstance(item, int | Term) else item if _outside(walk, n, item) else None
            for item in entries
        )
    return replace(content, shape=shape, entries=entries, law=None)


def _outside(walk: Walk, n: NodeId, item: Number | None) -> bool:
    """True if it is an element of a tensor that is not in a body of the node."""
    return isinstance(item, Read) and not belongs(walk, n, f"{item.name}.Int")


def _kept(walk: Walk, n: NodeId, t: TensorId, content: Content, run: int) -> Content:
    """The result of one run, for those behind it: sizes that only the run knows are open."""

    def size(number: numbers.Int, axis: int) -> numbers.Int:
        name = f"t{t}.run{run}.size.{axis}"
        if isinstance(number, Term) and _mentions_inside(walk, n, number):
            walk.known.makers[name] = n
            return free(walk, name)
        return named(walk, number, name)

    shape = None if content.shape is None else tuple(size(number, axis) for axis, number in enumerate(content.shape))
    entries = content.entries
    if entries is not None:
        entries = tuple(
            None if isinstance(item, Term) and _mentions_inside(walk, n, item) else item for item in entries
        )
    items = content.items
    if items is not None:
        forms: list[Content] = []
        for form in items.like if items.entries is None else items.entries:
            _add_form(walk, t, forms, form)
        length = items.length
        if isinstance(length, Term) and _mentions_inside(walk, n, length):
            length = free(walk, f"t{t}.run{run}.length")
        items = Items(length, None, tuple(forms))
    return replace(content, shape=shape, entries=entries, items=items)


def _mentions_inside(walk: Walk, n: NodeId, term: Term) -> bool:
    return any(belongs(walk, n, name) for name in mentioned(term) if name in walk.known.symbols)


def _unrolled(walk: Walk, n: NodeId, count: int, rows: Sequence[Sequence[Content]]) -> None:
    """The outputs of a Loop of which all runs are known. count: of carried values."""
    for position, output in enumerate(walk.model.nodes[n].outputs):
        if output is None:
            continue
        column = [row[position + 1] for row in rows if position + 1 < len(row)]
        if not column:
            settle(walk, n, output, _lost(output))
        elif position < count:
            settle(walk, n, output, column[-1])
        elif (open_ := next((content for content in column if content.shape is None), None)) is not None:
            reason, made, dead = open_.reason, open_.made, open_.dead
            settle(walk, n, output, Content("", open_.element, None, reason=reason, made=made, dead=dead))
        else:
            shapes = [content.shape for content in column if content.shape is not None]
            alike = all(len(shape) == len(shapes[0]) for shape in shapes)
            sizes = [numbers.equal(a, b) for shape in shapes[1:] for a, b in zip(shape, shapes[0], strict=False)]
            asked(walk, n, numbers.both(*sizes) if alike else FALSE, [])
            settle(walk, n, output, Content("", column[0].element, (len(rows), *shapes[0])))


def _count(walk: Walk, t: TensorId, trips: numbers.Int | None, *, surely: bool, ended: bool) -> numbers.Int:
    """The number of runs of a Loop. ended: a condition may end it early."""
    most = None if trips is None else numbers.maximum(trips, 0)
    if most is not None and not ended:
        return named(walk, most, f"t{t}.size.0")
    count = free(walk, f"t{t}.size.0")
    walk.known.facts[numbers.at_most(1 if surely else 0, count)] = None
    if most is not None:
        walk.known.facts[numbers.at_most(count, most)] = None
    return count


def _runs(walk: Walk, n: NodeId, number: Term, trips: numbers.Int | None, begins: Term | None) -> tuple[Term, ...]:
    """The facts that hold where a run begins, none for a body that surely runs: its number is one of those that there
    are."""
    path: tuple[Term, ...] = ()
    if isinstance(trips, int) and trips > 0:
        walk.known.facts[numbers.less(number, trips)] = None
    elif trips is not None:
        path = (numbers.less(number, trips),)
    if begins != TRUE:
        if begins is None:
            name = f"n{n}.condition"
            walk.known.symbols[name] = (0, "Bool")
            begins = Term(name)
        path = (*path, begins)
    return path


def _stacked(
    walk: Walk, n: NodeId, t: TensorId, source: TensorId, count: numbers.Int, axis: int, runs: tuple[Term, ...]
) -> None:
    """The results of the runs, one after the other along an axis: each run the same shape. runs: what holds where the
    body runs. Where it does not, the sizes are those that it declares, 0 for one that is no number (Step/loop-none,
    Step/scan-none).
    """
    result = walk.known.contents.get(source, _lost(source))
    declared = next((d for _, d in walk.stated.get(source, ()) if d.kind == "tensor" and d.shape is not None), None)
    unrun = [size if isinstance(size, int) and size >= 0 else 0 for size in (declared and declared.shape) or ()]
    if result.dead and runs and declared is not None and -len(unrun) - 1 <= axis <= len(unrun):  # where it has no run
        at = axis + len(unrun) + 1 if axis < 0 else axis
        return settle(walk, n, t, Content("", declared.element, (*unrun[:at], 0, *unrun[at:])))
    if result.shape is None:
        reason, dead = result.reason or "the runs give no shape", result.dead and not runs
        made = HERE if result.dead and runs else result.made  # it has a value where the body does not run
        return settle(walk, n, t, Content("", result.element, None, reason=reason, made=made, dead=dead))
    at = axis + len(result.shape) + 1 if axis < 0 else axis
    asked(walk, n, TRUE if 0 <= at <= len(result.shape) else FALSE, [])
    shape = _of_all_runs(walk, n, t, result.shape, runs, lambda k: k + (k >= at))
    if runs:
        some = numbers.less(0, count)
        if declared is None:
            asked(walk, n, some, [])
        elif len(unrun) != len(shape):
            said = "the number of axes depends on whether the body runs"
            return settle(walk, n, t, Content("", result.element, None, reason=said, made=HERE))
        else:
            shape = tuple(
                named(walk, numbers.choose(some, size, other), f"t{t}.size.{k + (k >= at)}")
                for k, (size, other) in enumerate(zip(shape, unrun, strict=True))
            )
    return settle(walk, n, t, Content("", result.element, (*shape[:at], count, *shape[at:])))


def _of_all_runs(
    walk: Walk,
    n: NodeId,
    t: TensorId,
    shape: tuple[numbers.Int, ...],
    runs: tuple[Term, ...],
    axis: Callable[[int], int],
) -> tuple[numbers.Int, ...]:
    """The shape that every run gives. A size that may differ from run to run is required not to. axis: there."""
    sizes: list[numbers.Int] = []
    for k, size in enumerate(shape):
        if not isinstance(size, Term) or not varies(walk, n, size):
            sizes.append(size)
            continue
        sizes.append(free(walk, f"t{t}.size.{axis(k)}"))
        with under(walk, *runs):
            asked(walk, n, numbers.equal(size, sizes[-1]), [])
    return tuple(sizes)


_BATCHED = 8  # the version of Scan with a batch axis


def _scan(walk: Walk, n: NodeId) -> None:
    node, body = walk.model.nodes[n], _bodies(walk, n).get("body")
    stated = walk.program.attributes(n)
    scanned = stated.get("num_scan_inputs")
    if body is None or not isinstance(scanned, int):
        return _unfollowed(walk, n, "the node has no body, or does not say what it scans")
    inner = walk.model.graphs[body]
    batched = (node.version or 0) <= _BATCHED
    first = 1 if batched else 0
    states = len(node.inputs) - first - scanned
    collected = len(inner.outputs) - states
    axes = _axes(None if batched else stated.get("scan_input_axes"), scanned)
    out_axes = _axes(None if batched else stated.get("scan_output_axes"), collected)
    sizes: list[numbers.Int] = []
    batches: list[numbers.Int] = []
    fixed, carried, contents = {}, {}, []
    for position, t in enumerate(inner.inputs):
        content = _input(walk, n, first + position) or _lost(t)
        contents.append(content)
        if batched:
            content = _element(content, 0, batches)
        if position < states:
            carried[t] = _carried(t, content)
        else:
            axis = axes[position - states] if position - states < len(axes) else 0
            fixed[t] = replace(_element(content, axis, sizes), name=f"t{t}")
    fits = _all_equal(sizes) + _all_equal(batches) + ([] if len(sizes) == scanned else [FALSE])
    lengths = _input(walk, n, 0) if batched else None
    asked(walk, n, numbers.both(*fits), contents)
    if lengths is not None:
        _lengths(walk, n, lengths, batches, sizes)
    length: numbers.Int = sizes[0] if sizes else free(walk, f"n{n}.length")
    batch: numbers.Int = batches[0] if batches else 1
    surely = lengths is None and all(isinstance(size, int) and size > 0 for size in (length, batch))
    runs = () if surely else tuple(c for c in (numbers.at_most(1, length), numbers.at_most(1, batch)) if c != TRUE)
    with under(walk, *runs):
        _repeated(walk, body, fixed, carried, inner.outputs)
    for position, output in enumerate(node.outputs):
        if output is None:
            continue
        if position >= len(inner.outputs) or len(inner.inputs) <= position < states:
            settle(walk, n, output, _lost(output))
        elif position < states:
            state = walk.known.contents[inner.inputs[position]]
            if batched and state.shape is not None:
                state = replace(state, shape=(batch, *state.shape))
            _final(walk, n, output, state)
        else:
            _scanned(walk, n, output, inner.outputs[position], length, batch, out_axes[position - states], runs)
    return None


def _scanned(
    walk: Walk,
    n: NodeId,
    t: TensorId,
    source: TensorId,
    length: numbers.Int,
    batch: numbers.Int,
    axis: int,
    runs: tuple[Term, ...],
) -> None:
    """A scan output: the elements of all runs along a new axis; in version 8 for all sequences of the batch."""
    if (walk.model.nodes[n].version or 0) > _BATCHED:
        return _stacked(walk, n, t, source, length, axis, runs)
    result = walk.known.contents.get(source, _lost(source))
    if result.shape is None or runs:
        reason = result.reason or "how often the body of this Scan runs is open"
        return settle(walk, n, t, Content("", result.element, None, reason=reason, made=result.made or HERE))
    shape = _of_all_runs(walk, n, t, result.shape, runs, lambda k: k + 2)
    return settle(walk, n, t, Content("", result.element, (batch, length, *shape)))


def _lengths(
    walk: Walk, n: NodeId, lengths: Content, batches: Sequence[numbers.Int], sizes: Sequence[numbers.Int]
) -> None:
    """sequence_lens: one length for each sequence of the batch, none negative or greater than the axis."""
    name = f"{lengths.name}.Int"
    walk.known.symbols[name] = (1, "Int")
    index = Term("b!0")
    inside = numbers.both(
        numbers.at_most(0, Term(name, (index,))), numbers.at_most(Term(name, (index,)), sizes[0] if sizes else 0)
    )
    batch = batches[0] if batches else 0
    ranged = Term(
        "forall",
        ("b!0", Term("or", (numbers.opposite(numbers.at_most(0, index)), numbers.at_most(batch, index), inside))),
    )
    shape = lengths.shape or ()
    asked(walk, n, numbers.both(numbers.equal(shape[0], batch) if len(shape) == 1 else FALSE, ranged), [lengths])


def _all_equal(sizes: Sequence[numbers.Int]) -> list[Term]:
    return [numbers.equal(sizes[0], size) for size in sizes[1:]]


def _axes(stated: object, count: int) -> Sequence[int]:
    axes = [int(axis) for axis in stated] if isinstance(stated, tuple) else []
    return axes if len(axes) == count else [0] * max(count, 0)


def _element(content: Content, axis: int, lengths: list[numbers.Int]) -> Content:
    """One element of a scan input; the number of elements is noted."""
    if content.shape is None:
        return Content("", content.element, None, reason=content.reason, made=content.made)
    if not -len(content.shape) <= axis < len(content.shape):
        return Content("", content.element, None, reason="a scan axis is out of range")
    axis %= len(content.shape)
    lengths.append(content.shape[axis])
    return Content("", content.element, content.shape[:axis] + content.shape[axis + 1 :])


# ---- SequenceMap ------------------------------------------------------------------------------


def _sequence_map(walk: Walk, n: NodeId) -> None:
    node, body = walk.model.nodes[n], _bodies(walk, n).get("body")
    given = [_input(walk, n, position) or Content("", "", None) for position in range(len(node.inputs))]
    rows = [content.items for content in given if content.items is not None]
    if body is None or not given or given[0].items is None:
        return _unfollowed(walk, n, "the node has no body, or its first input is no sequence")
    inner = walk.model.graphs[body]
    asked(walk, n, numbers.both(*_all_equal([row.length for row in rows])), [])
    fixed = {}
    for t, content in zip(inner.inputs, given, strict=False):
        fixed[t] = _entry(walk, t, content) if content.items is not None else content
    runs = () if (some := numbers.at_most(1, rows[0].length)) == TRUE else (some,)
    with under(walk, *runs):
        _repeated(walk, body, fixed, {}, ())
    results = _outputs(walk, body)
    for position, output in enumerate(node.outputs):
        if output is None:
            continue
        result = results[position] if position < len(results) else _lost(output)
        if runs and position < len(inner.outputs) and not _states_type(walk, inner.outputs[position]):
            asked(walk, n, some, [])  # Step/sequence-map-none
        forms: list[Content] = []
        _add_form(walk, inner.outputs[position] if position < len(results) else output, forms, result)
        items = Items(rows[0].length, None, tuple(forms))
        settle(walk, n, output, Content("", f"sequence_{result.element}" if result.element else "", None, items=items))
    return None


def _states_type(walk: Walk, t: TensorId) -> bool:
    """A body declares t as a tensor of an element type."""
    return any(declared.kind == "tensor" and declared.element for _, declared in walk.stated.get(t, ()))


def _entry(walk: Walk, t: TensorId, content: Content) -> Content:
    """Any entry of a sequence."""
    items = content.items
    forms: list[Content] = []
    for form in () if items is None else items.like if items.entries is None else items.entries:
        _add_form(walk, t, forms, form)
    if len(forms) != 1 or forms[0].shape is None:
        return Content(f"t{t}", "", None, reason="entries of a sequence differ in the number of axes", made=HERE)
    shape = tuple(free(walk, f"t{t}.size.{axis}") if n == VARIES else n for axis, n in enumerate(forms[0].shape))
    return Content(f"t{t}", forms[0].element, shape)


def _unfollowed(walk: Walk, n: NodeId, reason: str) -> None:
    """A node of whose bodies nothing is known."""
    for _, body in walk.model.nodes[n].bodies:
        unexamined(walk, body, reason)
    unknown(walk, n, reason)


BODIES: Mapping[str, Callable[[Walk, NodeId], None]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _sequence_map,
}
"""For each operator that holds graphs how its bodies are examined."""


# ---- Nodes -------------------------------------------------------------------------------------

OVERRIDABLE = 4
"""From this IR version on an initializer that is also an input is a default which a caller may replace."""


class UnknownSizeError(ModelError):
    """A size is named that the inputs do not have. known: those that they have."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"the inputs have no symbolic size {quote(name)}; they have: {', '.join(known) or 'none'}")
        self.known = known


def examine_model(
    model: Model, possible: contents.Possible, limits: Mapping[str, tuple[int, int | None]] | None = None
) -> Examination:
    """The requirements of all nodes. limits: the least and the greatest value of symbolic sizes by name; 1 and any
    where nothing is said. Raises UnknownSizeError where the inputs have no size of such a name.
    """
    walk = Walk(Program(model), possible, Examination(model), graph, stated=_stated(model))
    _inputs(walk, limits or {})
    surplus = sorted(set(limits or {}) - set(walk.known.sizes.values()))
    if surplus:
        raise UnknownSizeError(surplus[0], tuple(walk.known.sizes.values()))
    graph(walk, 0)
    examination = walk.known
    examination.undefined[:] = dict.fromkeys(examination.undefined)
    for key, nodes in examination.met.items():
        if key[1] not in (
            contents.DECLARED,
            contents.TYPED,
        ):  # a node of a Loop that is examined run by run counts once
            nodes[:] = dict.fromkeys(nodes)
    return examination


def _stated(model: Model) -> Mapping[TensorId, Sequence[tuple[str, ValueType]]]:
    """The statements of the model on the types of tensors: in the graphs, whose dimension variables it shares, and in
    the functions that calls were expanded from, each of which has its own.
    """
    stated: dict[TensorId, dict[tuple[str, ValueType], None]] = {}
    for graph_ in model.graphs:
        calls = () if graph_.holder is None else model.nodes[graph_.holder].calls
        around = calls[-1] if calls else ""
        pairs = (*graph_.value_infos, *zip(graph_.inputs, graph_.input_types, strict=False))
        for t, type_ in (*pairs, *zip(graph_.outputs, graph_.output_types, strict=False)):
            if type_ is not None:
                stated.setdefault(t, {})[around, type_] = None
    for node in model.nodes:
        for output in (t for t in node.outputs if t is not None):
            declared = model.tensors[output].declared
            if declared is not None and output not in stated:
                stated[output] = {(node.calls[-1] if node.calls else "", declared): None}
    return {t: tuple(types) for t, types in stated.items()}


# ---- What is known before a graph runs --------------------------------------------------------


def _inputs(walk: Walk, limits: Mapping[str, tuple[int, int | None]]) -> None:
    """The inputs of the main graph, with a symbol for each size that is left open."""
    main = walk.model.graphs[0]
    stored = {t for t, _ in initializers(main)}
    for t in dict.fromkeys(main.inputs):
        if t in stored and walk.model.ir_version < OVERRIDABLE:
            continue
        declared = walk.model.tensors[t].declared
        walk.known.contents[t] = _declared(walk, t, declared, limits)
    walk.known.limits = tuple(walk.known.facts)


def _declared(
    walk: Walk,
    t: TensorId,
    declared: ValueType | None,
    limits: Mapping[str, tuple[int, int | None]],
) -> contents.Content:
    name = walk.model.tensors[t].name
    if declared is not None and declared.kind in ("sequence", "optional") and type_name(declared):
        return _listed(walk, t, declared)
    if declared is not None and declared.kind == "map" and type_name(declared):
        return _columns(walk, t, declared, "length")
    if declared is None or declared.kind not in ("tensor", "sparse_tensor"):
        kind = "unset" if declared is None else declared.kind
        return contents.Content(f"t{t}", "", None, reason=f"the input {name} is declared as {kind}, no tensor")
    if declared.shape is None:
        return contents.Content(f"t{t}", declared.element, None, reason=f"the input {name} is declared without a shape")
    shape: list[Int] = []
    for axis, size in enumerate(declared.shape):
        if isinstance(size, int) and size >= 0:
            shape.append(size)
            continue
        variable = size if isinstance(size, str) else ""  # -1 is a custom of some exporters
        known = walk.dimensions.get(("", variable)) if variable else None
        if known is None:
            known = _size(walk, variable or f"{name}[{axis}]", limits)
            if variable:
                walk.dimensions["", variable] = known
        shape.append(known)
    return contents.Content(f"t{t}", declared.element, tuple(shape))


def _listed(walk: Walk, t: TensorId, declared: ValueType, name: str = "length") -> contents.Content:
    """A sequence or optional of which the caller chooses what is in it. name: of its length.

    A size that is no number differs from entry to entry, also where it has a name: a run takes such entries, as ONNX's
    own tests of SequenceMap give them (onnx 1.23.2, onnx/backend/test/case/node/sequence_map.py).
    """
    inner = declared.inner or ValueType("unset")
    length = free(walk, f"t{t}.{name}")
    if declared.kind == "optional":
        walk.known.facts[at_most(length, 1)] = None
    if inner.kind in ("sequence", "optional"):
        form = _listed(walk, t, inner, f"inner.{name}")
    elif inner.kind == "map":
        form = _columns(walk, t, inner, f"inner.{name}")
    elif inner.shape is None:
        form = contents.Content(
            "", inner.element, None, reason="the entries are declared without a shape", made=contents.HERE
        )
    else:
        sizes = tuple(size if isinstance(size, int) and size >= 0 else VARIES for size in inner.shape)
        form = contents.Content("", inner.element, sizes)
    return contents.Content(f"t{t}", type_name(declared), None, items=contents.Items(length, None, (form,)))


def _columns(walk: Walk, t: TensorId, declared: ValueType, name: str) -> contents.Content:
    """A map of which the caller chooses what is in it: its keys, and the values at them. name: of their number."""
    inner = declared.inner or ValueType("unset")
    if inner.kind != "tensor" or any(size != 1 for size in inner.shape or ()):
        return contents.Content(f"t{t}", "", None, reason="a map is declared whose values are no single elements")
    length = free(walk, f"t{t}.{name}")
    columns = tuple(contents.Content("", element, (length,)) for element in (declared.element, inner.element))
    return contents.Content(f"t{t}", type_name(declared), None, items=contents.Items(2, columns))


def _size(walk: Walk, label: str, limits: Mapping[str, tuple[int, int | None]]) -> Term:
    """A size that a caller chooses, with a name of its own: a variable may bear that of a size without one."""
    while label in walk.known.sizes.values():
        label += "'"
    symbol = Term(f"dim.{len(walk.known.sizes)}")
    walk.known.sizes[symbol.op] = label
    walk.known.symbols[symbol.op] = (0, "Int")
    least, most = limits.get(label, (1, None))
    walk.known.facts[at_most(least, symbol)] = None
    if most is not None:
        walk.known.facts[at_most(symbol, most)] = None
    return symbol


def stored(walk: Walk, graph_id: GraphId) -> None:
    """The initializers of a graph."""
    for t, it in initializers(walk.model.graphs[graph_id]):
        if t in walk.known.contents:
            continue
        try:
            data = array_of(it, walk.model, walk.model.tensors[t].name, None)
        except (ModelError, Unsupported):
            data = OutOfBudget(0, 0, "")
        if isinstance(data, OutOfBudget):
            walk.known.contents[t] = contents.Content(f"t{t}", it.element, it.dims)
        else:
            walk.known.contents[t] = replace(contents.constant(f"t{t}", data), name=f"t{t}")


# ---- Nodes ------------------------------------------------------------------------------------


def graph(walk: Walk, graph_id: GraphId) -> None:
    """All nodes of a graph whose inputs are known."""
    stored(walk, graph_id)
    order = walk.program.order(graph_id)
    for n in order:
        node = walk.model.nodes[n]
        if node.bodies and normal_domain(node.domain) == "" and node.op_type in BODIES:
            BODIES[node.op_type](walk, n)
        else:
            _node(walk, n)
        walk.known.order[n] = len(walk.known.order)
    if not walk.silent:
        ordered = set(order)
        walk.known.skipped += [n for n in walk.model.graphs[graph_id].nodes if n not in ordered]


def _node(walk: Walk, n: NodeId) -> None:
    node = walk.model.nodes[n]
    operator = definition(walk, n)
    if operator is None or operator.rule:
        if not walk.silent:
            walk.known.undefined.append(n)
        unknown(walk, n, f"the specification does not define {node.op_type} of {node.domain or 'ai.onnx'}")
        return
    wrong = _misuse(node)
    if wrong:
        if not walk.silent:
            walk.known.misused[n] = wrong
        unknown(walk, n, wrong)
        return
    inputs = tuple(
        None
        if t is None
        else walk.known.contents.get(t) or contents.Content(f"t{t}", "", None, reason="an input has no value")
        for t in node.inputs
    )
    attributes = walk.program.attributes(n)
    site = contents.Site(operator, node.version or 0, inputs, attributes, tuple(t is not None for t in node.outputs))
    key = _key(walk, site)
    known = walk.remembered.get(key)
    if known is None:
        facts = (*walk.known.facts, *walk.path)
        known = walk.remembered[key] = examine(site, facts, walk.known.symbols, walk.possible), site
    examined, _ = known
    if examined.symbols or not all(map(contents.plain, examined.outputs)):
        new = contents.names(n, node.outputs, site, examined)
        examined = contents.renamed(examined, new, contents.tensors(site))
    take(walk, n, site, examined)


def _misuse(node: Node) -> str:
    """The part of a node that its operator cannot read, in words: an attribute of another kind; empty where there is
    nothing."""
    known = schema_at(node) if node.attributes else None
    for name, attribute in node.attributes.items():
        formal = None if known is None else known.attributes.get(name)
        if formal is not None and formal.kind != attribute.kind:
            return f"the attribute {quote(name)} is {attribute.kind}, {node.op_type} reads {formal.kind}"
    return ""


def _key(walk: Walk, site: contents.Site) -> Hashable:
    inputs = tuple(None if c is None else _content_key(c) for c in site.inputs)
    attributes = tuple((name, id(v) if isinstance(v, np.ndarray) else v) for name, v in site.attributes.items())
    return id(site.operator), site.version, inputs, attributes, site.outputs, walk.path


def _content_key(content: contents.Content) -> Hashable:
    data, items = content.data, content.items
    if items is not None:
        rows = (
            None if items.entries is None else tuple(map(_content_key, items.entries)),
            tuple(map(_content_key, items.like)),
        )
        return content.element, items.length, rows
    if data is None:
        return content.element, content.shape, content.entries, content.law, content.reason, content.made, content.dead
    exact = data.size <= contents.SMALL and data.dtype != object
    return content.element, data.shape, data.tobytes() if exact else id(data)


def take(walk: Walk, n: NodeId, site: contents.Site, examined: contents.Examined) -> None:
    """Note what a node requires, and what is known behind it."""
    if not walk.silent:
        for demand in examined.demands:
            if demand.goal is not None and all(p in walk.known.facts or p in walk.path for p in conjuncts(demand.goal)):
                walk.known.met.setdefault((site.operator, demand.position), []).append(n)
            else:
                facts = tuple(fact for fact in demand.facts if fact not in walk.path)
                walk.known.instances.append(
                    OpenRequirement(
                        n,
                        site.operator,
                        demand.position,
                        demand.goal,
                        walk.path,
                        facts,
                        examined.symbols,
                        demand.reason,
                        demand.about,
                        n if demand.made == contents.HERE else demand.made,
                    )
                )
    _keep_lasting(walk, examined)
    main = walk.model.graphs[0]
    for read in dict.fromkeys(t for t in walk.model.nodes[n].inputs if t is not None and t in main.inputs):
        given = walk.known.contents.get(read)
        _sized(walk, n, read, None if given is None else given.shape)
    for t, content in zip(walk.model.nodes[n].outputs, examined.outputs, strict=True):
        if t is not None and content is not None:
            settle(walk, n, t, content)


def _keep_lasting(walk: Walk, examined: contents.Examined) -> None:
    """Keep the symbols that the nodes behind can use, and the facts about no others of this node."""
    if not examined.facts and not examined.symbols:
        return
    used = _defining(_usable(examined), examined)
    lasting = walk.known.symbols
    for fact in examined.facts:
        if fact in walk.known.facts or fact in walk.path:
            continue
        if all(name in lasting or name in used or name not in examined.symbols for name in contents.mentioned(fact)):
            if walk.path:
                fact = Term("=>", (walk.path[0] if len(walk.path) == 1 else Term("and", walk.path), fact))
            walk.known.facts[fact] = None
    walk.known.symbols.update({name: s for name, s in examined.symbols.items() if name in used})


def _usable(examined: contents.Examined) -> set[str]:
    """The symbols in the sizes and elements of outputs, and of elements of tensors that something is required of."""
    used: set[str] = set()
    for content in examined.outputs:
        if content is not None:
            known = [*(content.shape or ()), *(content.entries or ()), *(content.law[1:] if content.law else ())]
            terms = [Term(f"{it.name}.Int", it.index) if isinstance(it, Read) else it for it in known]
            used.update(*(contents.mentioned(term) for term in terms if isinstance(term, Term)))
    for demand in examined.demands:
        if demand.goal is not None:
            own = contents.mentioned(demand.goal) & examined.symbols.keys()
            used.update(name for name in own if contents.ELEMENT.match(name))
    return used


def _defining(used: set[str], examined: contents.Examined) -> set[str]:
    """These symbols with those of the node by which facts define them, and so on."""
    defined = {
        name: contents.mentioned(value) & examined.symbols.keys() for name, value in definitions(examined.facts).items()
    }
    while more := set().union(*(own for name, own in defined.items() if name in used)) - used:
        used = used | more
    return used
