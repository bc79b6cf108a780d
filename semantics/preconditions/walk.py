"""A whole model before it runs: every node in an order in which it could run, with what is known by then.

What a node requires is taken for granted behind it: a run that gets there has passed it. So a requirement that fails
is one where the machine would get stuck first.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from sonnx.spec.library import specification
from sonnx.spec.syntax import Operator

from ..budget import OutOfBudget
from ..errors import ModelError, Unsupported
from ..graph import GraphId, Model, NodeId, TensorId, ValueType
from ..interpretations.symbolic_numbers import Int, at_most, both, equal
from ..interpretations.symbolic_values import conjuncts
from ..path import quote
from ..program import Program, initializers
from ..schemas import normal_domain
from ..stored import array_of
from ..terms import FALSE, TRUE, Term
from .contents import SMALL, Content, constant
from .examining import DECLARED, HEADER, Examined, Facts, Possible, Site, Symbols
from .node import examine, requirements
from .renaming import mentioned, names, renamed

OVERRIDABLE = 4
"""From this IR version on an initializer that is also an input is a default which a caller may replace."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A requirement at a node that is not simply true. position: as in `node.Demand`. path: what is known to hold where
    the node runs at all. facts: what holds there in any case. symbols: of its own.
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

    @property
    def required(self) -> bool:
        """Whether the operator is undefined where the requirement fails; a restriction only narrows its use."""
        return self.position < 0 or self.operator.statements[self.position].kind == "require"


@dataclass(slots=True)
class Examination:
    """What is known of a model before it runs.

    instances: the requirements that are not simply true, in the order in which the nodes can run. held: for each
    requirement (definition and position) the nodes that meet it by numbers alone. undefined: the nodes whose operator
    the specification does not define. skipped: the nodes that never run. sizes: the symbolic sizes of the inputs, with
    what they are called, limits: which values they have. contents: by tensor.
    """

    model: Model
    instances: list[Instance] = field(default_factory=list)
    held: dict[tuple[Operator, int], list[NodeId]] = field(default_factory=dict)
    undefined: list[NodeId] = field(default_factory=list)
    skipped: list[NodeId] = field(default_factory=list)
    sizes: dict[str, str] = field(default_factory=dict)
    symbols: dict[str, tuple[int, str]] = field(default_factory=dict)
    facts: dict[Term, None] = field(default_factory=dict)
    contents: dict[TensorId, Content] = field(default_factory=dict)
    limits: Facts = ()


@dataclass(slots=True)
class Walk:
    """An examination that goes on.

    remembered: what an examination gave, by what it depends on. The keys hold ids of texts and arrays; the sites keep
    those alive, so that no id means another one later.
    """

    program: Program
    possible: Possible
    found: Examination
    path: Facts = ()
    silent: int = 0
    remembered: dict[Hashable, tuple[Examined, Site]] = field(default_factory=dict)

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
    from ..interpretations import ieee

    walk = Walk(Program(model, ieee.apply), possible, Examination(model))
    _inputs(walk, limits or {})
    surplus = sorted(set(limits or {}) - set(walk.found.sizes.values()))
    if surplus:
        known = ", ".join(walk.found.sizes.values()) or "none"
        raise ModelError(f"the inputs have no symbolic size {quote(surplus[0])}; they have: {known}")
    graph(walk, 0)
    return walk.found


# ---- What is known before a graph runs --------------------------------------------------------


def _inputs(walk: Walk, limits: Mapping[str, tuple[int, int | None]]) -> None:
    """The inputs of the main graph, with a symbol for each size that is left open."""
    main = walk.model.graphs[0]
    stored = {t for t, _ in initializers(main)}
    symbols: dict[str, Term] = {}
    for t in dict.fromkeys(main.inputs):
        if t in stored and walk.model.ir_version < OVERRIDABLE:
            continue
        declared = walk.model.tensors[t].declared
        walk.found.contents[t] = _declared(walk, t, declared, symbols, limits)
    walk.found.limits = tuple(walk.found.facts)


def _declared(
    walk: Walk,
    t: TensorId,
    declared: ValueType | None,
    symbols: dict[str, Term],
    limits: Mapping[str, tuple[int, int | None]],
) -> Content:
    name = walk.model.tensors[t].name
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
        label = size if isinstance(size, str) and size else f"{name}[{axis}]"  # -1 is a custom of some exporters
        if label not in symbols:
            symbol = symbols[label] = Term(f"dim.{len(symbols)}")
            walk.found.sizes[symbol.op] = label
            walk.found.symbols[symbol.op] = (0, "Int")
            least, most = limits.get(label, (1, None))
            walk.found.facts[at_most(least, symbol)] = None
            if most is not None:
                walk.found.facts[at_most(symbol, most)] = None
        shape.append(symbols[label])
    return Content(f"t{t}", declared.element, tuple(shape))


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
    inputs = tuple(None if t is None else walk.found.contents.get(t, _missing(t)) for t in node.inputs)
    attributes = walk.program.attributes(n)
    site = Site(operator, node.version or 0, inputs, attributes, tuple(t is not None for t in node.outputs))
    key = _key(walk, site)
    if key not in walk.remembered:
        facts = (*walk.found.facts, *walk.path)
        walk.remembered[key] = examine(site, facts, walk.found.symbols, walk.possible), site
    examined, _ = walk.remembered[key]
    take(walk, n, site, renamed(examined, names(n, site, examined.symbols)))


def _missing(t: TensorId) -> Content:
    return Content(f"t{t}", "", None, reason="an input has no value")


def _key(walk: Walk, site: Site) -> Hashable:
    inputs = tuple(None if c is None else _content_key(c) for c in site.inputs)
    attributes = tuple((name, id(v) if isinstance(v, np.ndarray) else v) for name, v in site.attributes.items())
    return id(site.operator), site.version, inputs, attributes, site.outputs, walk.path


def _content_key(content: Content) -> Hashable:
    data = content.data
    if data is None:
        return content.element, content.shape, content.entries, content.law, content.reason
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
                    )
                )
    for t, content in zip(walk.model.nodes[n].outputs, examined.outputs, strict=True):
        if t is not None and content is not None:
            settle(walk, n, t, content)
    _last(walk, examined)


def settle(walk: Walk, n: NodeId, t: TensorId, content: Content) -> None:
    """What is known of a tensor from now on; of an open shape what the model declares."""
    tensor = walk.model.tensors[t]
    declared = tensor.declared
    if content.shape is not None and declared is not None and declared.kind == "tensor":
        _compare(walk, n, content.shape, declared)
    if content.shape is None and declared is not None and declared.kind == "tensor" and declared.shape is not None:
        shape = tuple(
            n if isinstance(n, int) else free(walk, f"t{t}.size.{axis}") for axis, n in enumerate(declared.shape)
        )
        content = Content("", declared.element, shape)
    element = content.element or ("" if declared is None or declared.kind != "tensor" else declared.element)
    walk.found.contents[t] = replace(content, name=f"t{t}", element=element)


def _compare(walk: Walk, n: NodeId, shape: tuple[Int, ...], declared: ValueType) -> None:
    """Note whether an output can have the shape that the model declares; a name or nothing contradicts no size."""
    operator = definition(walk, n)
    if walk.silent or operator is None or declared.shape is None:
        return
    pairs = zip(shape, declared.shape, strict=False)
    goal = both(*(equal(a, b) for a, b in pairs if isinstance(b, int) and b >= 0))
    if len(shape) != len(declared.shape):
        goal = FALSE
    if goal == TRUE:
        walk.found.held.setdefault((operator, DECLARED), []).append(n)
    else:
        facts = tuple(walk.found.facts)
        walk.found.instances.append(Instance(n, operator, DECLARED, goal, walk.path, facts, walk.found.symbols))


def free(walk: Walk, name: str) -> Term:
    """A size that data decide."""
    walk.found.symbols[name] = (0, "Int")
    walk.found.facts[at_most(0, Term(name))] = None
    return Term(name)


def unknown(walk: Walk, n: NodeId, reason: str) -> None:
    """Nothing is known of the outputs of a node but what the model declares."""
    for t in walk.model.nodes[n].outputs:
        if t is not None:
            settle(walk, n, t, Content("", "", None, reason=reason))


def _last(walk: Walk, examined: Examined) -> None:
    """Facts and symbols that the nodes behind can use: about sizes of inputs, and what outputs are made of."""
    terms: list[Term] = []
    for content in examined.outputs:
        if content is not None:
            terms += [n for n in content.shape or () if isinstance(n, Term)]
            terms += [item for item in content.entries or () if isinstance(item, Term)]
            terms += [term for _, term in (content.law,) if isinstance(term, Term)] if content.law is not None else []
    used: frozenset[str] = frozenset().union(*map(mentioned, terms)) if terms else frozenset()
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
