"""The knowledge of a model before it runs, and the notes of a walk over its nodes.

Here are the notes; `walk` goes through the nodes, `control` through those that hold graphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.library import specification

from ...formulas.terms import FALSE, TRUE, Term, weight
from ...model.graph import GraphId, Model, NodeId, TensorId, ValueType
from ...model.schemas import operator_name
from ..application import Program
from ..symbolic.numbers import Int, at_most, both, definitions, either, equal, opposite
from .contents import (
    DECLARED,
    HEADER,
    HERE,
    LARGE,
    STEP,
    TYPED,
    Content,
    Examined,
    Facts,
    Possible,
    Site,
    Symbols,
    mentioned,
)
from .node import branches, requirements


@dataclass(frozen=True, slots=True)
class Instance:
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
    instances: list[Instance] = field(default_factory=list)
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


def definition(walk: Walk, n: NodeId) -> CoreOperator | None:
    """The text of a node's operator."""
    node = walk.model.nodes[n]
    if node.version is None:
        return None
    return specification().meanings.at(operator_name(node.domain, node.op_type), node.version)


def settle(walk: Walk, n: NodeId, t: TensorId, content: Content) -> None:
    """Sets what is known of a tensor from now on; of an open shape what the model declares, which is taken for true
    there.

    A shape of which data decide the number of axes is an obligation on its node: to be as declared.
    """
    content = replace(content, made=n) if content.made == HERE else content
    compared(walk, n, t, content)
    for around, declared in walk.stated.get(t, ()) if _is_open(content) else ():
        if declared.kind != "tensor" or declared.shape is None or content.shape is not None:
            continue
        operator = definition(walk, n)
        if content.made is not None and operator is not None and not walk.silent:
            said = f"that {walk.model.tensors[t].path} has the shape {_spelled(declared.shape)}, as declared"
            walk.known.instances.append(Instance(n, operator, DECLARED, None, walk.path, reason=said, made=n))
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
        walk.known.instances.append(Instance(n, operator, DECLARED, goal, path, facts, symbols, tensor=t))


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
        walk.known.instances.append(Instance(n, operator, TYPED, FALSE, reason=said))


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
            walk.known.instances.append(Instance(n, operator, STEP, None, walk.path, reason=opened.reason, made=made))
        elif goal == TRUE:
            walk.known.met.setdefault((operator, STEP), []).append(n)
        else:
            facts = tuple(walk.known.facts)
            symbols, reason = dict(walk.known.symbols), failed if goal == FALSE else ""
            walk.known.instances.append(Instance(n, operator, STEP, goal, walk.path, facts, symbols, reason))
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
            walk.known.instances += [Instance(n, operator, k, None, walk.path, reason=reason) for k in positions]
        for _, body in walk.model.nodes[n].bodies:
            unexamined(walk, body, reason)
