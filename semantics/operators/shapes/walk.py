"""A whole model before it runs: every node in an order in which it could run, with what is known by then.

What a node requires is taken for granted behind it: a run that gets there has passed it. So a requirement that fails
is one where the machine would get stuck first.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sonnx.spec.language.syntax import Operator
from sonnx.spec.library import specification

from ...errors import ModelError, Unsupported
from ...formulas.terms import FALSE, TRUE, Term, weight
from ...model.graph import GraphId, Model, Node, NodeId, TensorId, ValueType
from ...model.path import quote
from ...model.schemas import normal_domain, schema
from ...model.stored import array_of
from ...resources.budget import OutOfBudget
from ..program import Program, initializers
from ..symbolic.attributes import type_name
from ..symbolic.elements.opaque import Read
from ..symbolic.numbers import Int, at_most, both, either, equal, opposite
from ..symbolic.substitution import definitions
from ..symbolic.values import VARIES, conjuncts
from .contents import HERE, SMALL, Content, Held, constant
from .examining import DECLARED, HEADER, LARGE, STEP, TYPED, Examined, Facts, Possible, Site, Symbols
from .node import examine, requirements
from .outputs import branches
from .renaming import ELEMENT, mentioned, names, renamed, tensors

OVERRIDABLE = 4
"""From this IR version on an initializer that is also an input is a default which a caller may replace."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A requirement at a node that is not simply true. position: as in `node.Demand`. path: what is known to hold where
    the node runs at all. facts: what holds there in any case. symbols: of its own. made: where there is no goal, the
    node that gives the tensor of which data decide the number of axes; None where the goal is open for another reason.
    tensor: whose declared shape it is. only_fails: it counts where it fails, whatever the data; another instance, for
    any run, says the rest.
    """

    node: NodeId
    operator: Operator
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
        """Whether the operator is undefined where the requirement fails; a restriction only narrows its use."""
        return self.position < 0 or self.operator.statements[self.position].kind == "require"


@dataclass(frozen=True, slots=True)
class Stated:
    """What the model declares of a tensor that a node gives, beside what the text gives: the element types, or the
    sizes; a size that the declaration leaves open is None."""

    node: NodeId
    tensor: TensorId
    given: str | tuple[Int, ...]
    declared: str | tuple[Int | None, ...]


@dataclass(slots=True)
class Examination:
    """What is known of a model before it runs.

    instances: the requirements that are not simply true, in the order in which the nodes can run. held: for each
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
    held: dict[tuple[Operator, int], list[NodeId]] = field(default_factory=dict)
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

    remembered: what an examination gave, by what it depends on. The keys hold ids of texts and arrays; the sites keep
    those alive, so that no id means another one later. dimensions: what the dimension variables of the model stand for,
    each with the function call within which it is known. stated: the types that the model states of tensors, each with
    where its dimension variables are known.
    """

    program: Program
    possible: Possible
    found: Examination
    path: Facts = ()
    silent: int = 0
    remembered: dict[Hashable, tuple[Examined, Site]] = field(default_factory=dict)
    dimensions: dict[tuple[str, str], Int] = field(default_factory=dict)
    stated: Mapping[TensorId, Sequence[tuple[str, ValueType]]] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        """G."""
        return self.program.model


def examine_model(
    model: Model, possible: Possible, limits: Mapping[str, tuple[int, int | None]] | None = None
) -> Examination:
    """The requirements of all nodes. limits: the least and the greatest value of symbolic sizes by name; 1 and any
    where nothing is said. Raises ModelError where the inputs have no size of such a name.
    """
    from ..compiled import ieee

    walk = Walk(Program(model, ieee.apply), possible, Examination(model), stated=_stated(model))
    _inputs(walk, limits or {})
    surplus = sorted(set(limits or {}) - set(walk.found.sizes.values()))
    if surplus:
        known = ", ".join(walk.found.sizes.values()) or "none"
        raise ModelError(f"the inputs have no symbolic size {quote(surplus[0])}; they have: {known}")
    graph(walk, 0)
    found = walk.found
    found.undefined[:] = dict.fromkeys(found.undefined)
    for key, nodes in found.held.items():
        if key[1] not in (DECLARED, TYPED):  # a node of a Loop that is examined run by run counts once
            nodes[:] = dict.fromkeys(nodes)
    return found


def _stated(model: Model) -> Mapping[TensorId, Sequence[tuple[str, ValueType]]]:
    """What the model says of the types of tensors: in the graphs, whose dimension variables it shares, and in the
    functions that calls were expanded from, each of which has its own.
    """
    found: dict[TensorId, dict[tuple[str, ValueType], None]] = {}
    for graph_ in model.graphs:
        calls = () if graph_.holder is None else model.nodes[graph_.holder].calls
        around = calls[-1] if calls else ""
        pairs = (*graph_.value_infos, *zip(graph_.inputs, graph_.input_types, strict=False))
        for t, type_ in (*pairs, *zip(graph_.outputs, graph_.output_types, strict=False)):
            if type_ is not None:
                found.setdefault(t, {})[around, type_] = None
    for node in model.nodes:
        for output in (t for t in node.outputs if t is not None):
            declared = model.tensors[output].declared
            if declared is not None and output not in found:
                found[output] = {(node.calls[-1] if node.calls else "", declared): None}
    return {t: tuple(types) for t, types in found.items()}


# ---- What is known before a graph runs --------------------------------------------------------


def _inputs(walk: Walk, limits: Mapping[str, tuple[int, int | None]]) -> None:
    """The inputs of the main graph, with a symbol for each size that is left open."""
    main = walk.model.graphs[0]
    stored = {t for t, _ in initializers(main)}
    for t in dict.fromkeys(main.inputs):
        if t in stored and walk.model.ir_version < OVERRIDABLE:
            continue
        declared = walk.model.tensors[t].declared
        walk.found.contents[t] = _declared(walk, t, declared, limits)
    walk.found.limits = tuple(walk.found.facts)


def _declared(
    walk: Walk,
    t: TensorId,
    declared: ValueType | None,
    limits: Mapping[str, tuple[int, int | None]],
) -> Content:
    name = walk.model.tensors[t].name
    if declared is not None and declared.kind in ("sequence", "optional") and type_name(declared):
        return _listed(walk, t, declared, limits)
    if declared is None or declared.kind not in ("tensor", "sparse_tensor"):
        kind = "unset" if declared is None else declared.kind
        return Content(f"t{t}", "", None, reason=f"the input {name} is declared as {kind}, no tensor")
    if declared.shape is None:
        return Content(f"t{t}", declared.element, None, reason=f"the input {name} is declared without a shape")
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
    return Content(f"t{t}", declared.element, tuple(shape))


def _listed(
    walk: Walk, t: TensorId, declared: ValueType, limits: Mapping[str, tuple[int, int | None]], name: str = "length"
) -> Content:
    """A sequence or optional of which the caller chooses what is in it. name: of its length.

    A dimension variable is one size for all entries ("a sequence of tensors that all have the same shape", ONNX 1.23.2,
    IR.md, Static tensor shapes); a size without a name differs from entry to entry.
    """
    inner = declared.inner or ValueType("unset")
    length = free(walk, f"t{t}.{name}")
    if declared.kind == "optional":
        walk.found.facts[at_most(length, 1)] = None
    if inner.kind in ("sequence", "optional"):
        form = _listed(walk, t, inner, limits, f"inner.{name}")
    elif inner.shape is None:
        form = Content("", inner.element, None, reason="the entries are declared without a shape", made=HERE)
    else:
        named_ = replace(inner, shape=tuple(0 if size is None or size in ("", -1) else size for size in inner.shape))
        known = _declared(walk, t, named_, limits).shape or ()
        open_ = [size is None or size in ("", -1) for size in inner.shape]
        form = Content("", inner.element, tuple(VARIES if o else k for o, k in zip(open_, known, strict=True)))
    return Content(f"t{t}", type_name(declared), None, held=Held(length, None, (form,)))


def _size(walk: Walk, label: str, limits: Mapping[str, tuple[int, int | None]]) -> Term:
    """A size that a caller chooses, with a name of its own: a variable may bear that of a size without one."""
    while label in walk.found.sizes.values():
        label += "'"
    symbol = Term(f"dim.{len(walk.found.sizes)}")
    walk.found.sizes[symbol.op] = label
    walk.found.symbols[symbol.op] = (0, "Int")
    least, most = limits.get(label, (1, None))
    walk.found.facts[at_most(least, symbol)] = None
    if most is not None:
        walk.found.facts[at_most(symbol, most)] = None
    return symbol


def stored(walk: Walk, graph_id: GraphId) -> None:
    """The initializers of a graph."""
    for t, it in initializers(walk.model.graphs[graph_id]):
        if t in walk.found.contents:
            continue
        try:
            data = array_of(it, walk.model, walk.model.tensors[t].name, None)
        except (ModelError, Unsupported):
            data = OutOfBudget(0, 0, "")
        if isinstance(data, OutOfBudget):
            walk.found.contents[t] = Content(f"t{t}", it.element, it.dims)
        else:
            walk.found.contents[t] = replace(constant(f"t{t}", data), name=f"t{t}")


# ---- Nodes ------------------------------------------------------------------------------------


def graph(walk: Walk, graph_id: GraphId) -> None:
    """All nodes of a graph whose inputs are known."""
    from .control import BODIES

    stored(walk, graph_id)
    order = walk.program.order(graph_id)
    for n in order:
        node = walk.model.nodes[n]
        if node.bodies and normal_domain(node.domain) == "" and node.op_type in BODIES:
            BODIES[node.op_type](walk, n)
        else:
            _node(walk, n)
        walk.found.order[n] = len(walk.found.order)
    if not walk.silent:
        ordered = set(order)
        walk.found.skipped += [n for n in walk.model.graphs[graph_id].nodes if n not in ordered]


def definition(walk: Walk, n: NodeId) -> Operator | None:
    """The text of a node's operator."""
    node = walk.model.nodes[n]
    if normal_domain(node.domain) != "" or node.version is None:
        return None
    return next((o for o in specification().operators.get(node.op_type, ()) if o.first <= node.version <= o.last), None)


def _node(walk: Walk, n: NodeId) -> None:
    node = walk.model.nodes[n]
    operator = definition(walk, n)
    if operator is None or any(statement.kind == "rule" for statement in operator.statements):
        if not walk.silent:
            walk.found.undefined.append(n)
        unknown(walk, n, f"the specification does not define {node.op_type} of {node.domain or 'ai.onnx'}")
        return
    wrong = _misuse(node)
    if wrong:
        if not walk.silent:
            walk.found.misused[n] = wrong
        unknown(walk, n, wrong)
        return
    inputs = tuple(None if t is None else walk.found.contents.get(t, _missing(t)) for t in node.inputs)
    attributes = walk.program.attributes(n)
    site = Site(operator, node.version or 0, inputs, attributes, tuple(t is not None for t in node.outputs))
    key = _key(walk, site)
    if key not in walk.remembered:
        facts = (*walk.found.facts, *walk.path)
        walk.remembered[key] = examine(site, facts, walk.found.symbols, walk.possible), site
    examined, _ = walk.remembered[key]
    take(walk, n, site, renamed(examined, names(n, node.outputs, site, examined), tensors(site)))


def _misuse(node: Node) -> str:
    """What of a node its operator cannot read, in words: an attribute of another kind; empty where there is nothing."""
    known = schema(node.domain, node.op_type, node.version)
    for name, attribute in node.attributes.items():
        formal = None if known is None else known.attributes.get(name)
        if formal is not None and formal.kind != attribute.kind:
            return f"the attribute {quote(name)} is {attribute.kind}, {node.op_type} reads {formal.kind}"
    return ""


def _missing(t: TensorId) -> Content:
    return Content(f"t{t}", "", None, reason="an input has no value")


def _key(walk: Walk, site: Site) -> Hashable:
    inputs = tuple(None if c is None else _content_key(c) for c in site.inputs)
    attributes = tuple((name, id(v) if isinstance(v, np.ndarray) else v) for name, v in site.attributes.items())
    return id(site.operator), site.version, inputs, attributes, site.outputs, walk.path


def _content_key(content: Content) -> Hashable:
    data, held = content.data, content.held
    if held is not None:
        rows = (
            None if held.entries is None else tuple(map(_content_key, held.entries)),
            tuple(map(_content_key, held.like)),
        )
        return content.element, held.length, rows
    if data is None:
        return content.element, content.shape, content.entries, content.law, content.reason, content.made, content.dead
    exact = data.size <= SMALL and data.dtype != object
    return content.element, data.shape, data.tobytes() if exact else id(data)


def take(walk: Walk, n: NodeId, site: Site, examined: Examined) -> None:
    """Note what a node requires, and what is known behind it."""
    if not walk.silent:
        for demand in examined.demands:
            if demand.goal is not None and all(p in walk.found.facts or p in walk.path for p in conjuncts(demand.goal)):
                walk.found.held.setdefault((site.operator, demand.position), []).append(n)
            else:
                facts = tuple(fact for fact in demand.facts if fact not in walk.path)
                walk.found.instances.append(
                    Instance(
                        n,
                        site.operator,
                        demand.position,
                        demand.goal,
                        walk.path,
                        facts,
                        examined.symbols,
                        demand.reason,
                        demand.about,
                        n if demand.made == HERE else demand.made,
                    )
                )
    _last(walk, examined)
    for t, content in zip(walk.model.nodes[n].outputs, examined.outputs, strict=True):
        if t is not None and content is not None:
            settle(walk, n, t, content)


def settle(walk: Walk, n: NodeId, t: TensorId, content: Content) -> None:
    """What is known of a tensor from now on; of an open shape what the model declares, which is taken for true there.

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
            walk.found.instances.append(Instance(n, operator, DECLARED, None, walk.path, reason=said, made=n))
        shape = tuple(_dimension(walk, n, t, axis, size, around) for axis, size in enumerate(declared.shape))
        content = replace(content, element=content.element or declared.element, shape=shape)
    stated = next((type_.element for _, type_ in walk.stated.get(t, ()) if type_.kind == "tensor"), "")
    walk.found.contents[t] = replace(content, name=f"t{t}", element=content.element or stated)
    for size in content.shape or (() if content.held is None else (content.held.length,)):
        for name in mentioned(size) if isinstance(size, Term) else ():
            if name in walk.found.symbols and name not in walk.found.sizes:
                walk.found.makers.setdefault(name, n)


def _is_open(content: Content) -> bool:
    """Whether the number of axes of a tensor is not known."""
    return content.shape is None and content.held is None and not content.dead


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
    walk.found.stated.setdefault(Stated(n, t, shape, tuple(sizes)))
    if goal == TRUE:
        walk.found.held.setdefault((operator, DECLARED), []).append(n)
    else:
        facts, symbols = tuple(walk.found.facts), dict(walk.found.symbols)
        path = () if goal == FALSE else walk.path
        walk.found.instances.append(Instance(n, operator, DECLARED, goal, path, facts, symbols, tensor=t))


def _variable(walk: Walk, t: TensorId, name: tuple[str, str], size: Int) -> Int:
    """What a dimension variable stands for: at its first place the size of tensor t that has this name, or, where that
    differs from run to run of a body, one size that all runs are to have.
    """
    known = walk.dimensions.get(name)
    if known is None:
        known = size
        if isinstance(size, Term) and any(varies(walk, n, size) for n in _repeating(walk, t)):
            known = free(walk, f"variable.{len(walk.found.variables)}")
            walk.found.variables[known.op] = name[1]
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
    """Whether a size can differ from run to run: it depends on a symbol that belongs to a body of the node."""
    defined = definitions(walk.found.facts)
    waiting, seen = [size], set()
    while waiting:
        for name in mentioned(waiting.pop()):
            if name in seen or name not in walk.found.symbols:
                continue
            seen.add(name)
            if name in defined:
                waiting.append(defined[name])
            elif belongs(walk, n, name):
                return True
    return False


def belongs(walk: Walk, n: NodeId, symbol: str) -> bool:
    """Whether a symbol belongs to a tensor or node of a body of a node, or to the number of its run."""
    found = re.match(r"([tn])(\d+)\.", symbol)
    if found is None:
        return False
    number = int(found[2])
    if found[1] == "n" and number == n:
        return True
    around = walk.model.tensors[number].graph if found[1] == "t" else walk.model.nodes[number].graph
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
    walk.found.stated.setdefault(Stated(n, t, content.element, declared.element))
    if content.element == declared.element:
        walk.found.held.setdefault((operator, TYPED), []).append(n)
    else:
        said = f"it gives {content.element}, declared is {declared.element}"
        walk.found.instances.append(Instance(n, operator, TYPED, FALSE, reason=said))


def free(walk: Walk, name: str) -> Term:
    """A size that data decide."""
    walk.found.symbols[name] = (0, "Int")
    walk.found.facts[at_most(0, Term(name))] = None
    return Term(name)


def named(walk: Walk, number: Int, name: str) -> Int:
    """A number as a small term: a symbol that a fact defines where it has alternatives or is long."""
    if not isinstance(number, Term) or (weight(number) <= LARGE and not branches(number)):
        return number
    walk.found.symbols[name] = (0, "Int")
    walk.found.facts[Term("=", (Term(name), number))] = None
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
            walk.found.instances.append(Instance(n, operator, STEP, None, walk.path, reason=opened.reason, made=made))
        elif goal == TRUE:
            walk.found.held.setdefault((operator, STEP), []).append(n)
        else:
            facts = tuple(walk.found.facts)
            symbols, reason = dict(walk.found.symbols), failed if goal == FALSE else ""
            walk.found.instances.append(Instance(n, operator, STEP, goal, walk.path, facts, symbols, reason))
    if opened is None and goal not in (TRUE, FALSE):
        walk.found.facts[either(*map(opposite, walk.path), goal)] = None


def unknown(walk: Walk, n: NodeId, reason: str) -> None:
    """Nothing is known of the outputs of a node but what the model declares."""
    for t in walk.model.nodes[n].outputs:
        if t is not None:
            settle(walk, n, t, Content("", "", None, reason=reason))


def _last(walk: Walk, examined: Examined) -> None:
    """Facts and symbols that the nodes behind can use: about sizes of inputs, what outputs are made of, and the
    elements of tensors that something is required of.
    """
    terms: list[Term] = []
    for content in examined.outputs:
        if content is not None:
            terms += [n for n in content.shape or () if isinstance(n, Term)]
            known = [*(content.entries or ()), *(() if content.law is None else content.law[1:])]
            terms += [item for item in known if isinstance(item, Term)]
            terms += [Term(f"{item.name}.Int", item.index) for item in known if isinstance(item, Read)]
    used: frozenset[str] = frozenset().union(*map(mentioned, terms)) if terms else frozenset()
    goals = [demand.goal for demand in examined.demands if demand.goal is not None]
    used |= {name for goal in goals for name in mentioned(goal) if name in examined.symbols and ELEMENT.match(name)}
    defined = {name: mentioned(value) & examined.symbols.keys() for name, value in definitions(examined.facts).items()}
    while more := frozenset().union(*(own for name, own in defined.items() if name in used)) - used:
        used |= more
    lasting = walk.found.symbols.keys() | used
    for fact in examined.facts:
        if fact in walk.found.facts or fact in walk.path:
            continue
        if all(name in lasting or name not in examined.symbols for name in mentioned(fact)):
            if walk.path:
                fact = Term("=>", (walk.path[0] if len(walk.path) == 1 else Term("and", walk.path), fact))
            walk.found.facts[fact] = None
    walk.found.symbols.update({name: s for name, s in examined.symbols.items() if name in used})


def unexamined(walk: Walk, graph_id: GraphId, reason: str) -> None:
    """Note the requirements of the nodes of a graph, and of the bodies in it, as open."""
    for n in walk.model.graphs[graph_id].nodes:
        operator = definition(walk, n)
        if operator is not None and not walk.silent:
            positions = (HEADER, *requirements(operator))
            walk.found.instances += [Instance(n, operator, k, None, walk.path, reason=reason) for k in positions]
        for _, body in walk.model.nodes[n].bodies:
            unexamined(walk, body, reason)
