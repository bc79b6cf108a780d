"""A whole model before it runs: every node in an order in which it could run, with what is known by then.

What a node requires is taken for granted behind it: a run that gets there has passed it. So a requirement that fails
is one where the machine would get stuck first.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...errors import ModelError, Unsupported
from ...formulas.terms import Term
from ...model.graph import GraphId, Model, Node, NodeId, TensorId, ValueType
from ...model.path import quote
from ...model.schemas import normal_domain, schema
from ...model.stored import array_of
from ...resources.process import OutOfBudget
from ..application import Program, initializers
from ..symbolic.elements.opaque import Read
from ..symbolic.numbers import Int, at_most, definitions
from ..symbolic.statements import type_name
from ..symbolic.values import VARIES, conjuncts
from . import contents
from .control import BODIES
from .knowledge import Examination, Instance, Walk, definition, free, settle, unknown
from .node import examine

OVERRIDABLE = 4
"""From this IR version on an initializer that is also an input is a default which a caller may replace."""


def examine_model(
    model: Model, possible: contents.Possible, limits: Mapping[str, tuple[int, int | None]] | None = None
) -> Examination:
    """The requirements of all nodes. limits: the least and the greatest value of symbolic sizes by name; 1 and any
    where nothing is said. Raises ModelError where the inputs have no size of such a name.
    """
    from ..compiled import ieee

    walk = Walk(Program(model, ieee.apply), possible, Examination(model), graph, stated=_stated(model))
    _inputs(walk, limits or {})
    surplus = sorted(set(limits or {}) - set(walk.known.sizes.values()))
    if surplus:
        known = ", ".join(walk.known.sizes.values()) or "none"
        raise ModelError(f"the inputs have no symbolic size {quote(surplus[0])}; they have: {known}")
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
        return _listed(walk, t, declared, limits)
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


def _listed(
    walk: Walk, t: TensorId, declared: ValueType, limits: Mapping[str, tuple[int, int | None]], name: str = "length"
) -> contents.Content:
    """A sequence or optional of which the caller chooses what is in it. name: of its length.

    A dimension variable is one size for all entries ("a sequence of tensors that all have the same shape", ONNX 1.23.2,
    IR.md, Static tensor shapes); a size without a name differs from entry to entry.
    """
    inner = declared.inner or ValueType("unset")
    length = free(walk, f"t{t}.{name}")
    if declared.kind == "optional":
        walk.known.facts[at_most(length, 1)] = None
    if inner.kind in ("sequence", "optional"):
        form = _listed(walk, t, inner, limits, f"inner.{name}")
    elif inner.shape is None:
        form = contents.Content(
            "", inner.element, None, reason="the entries are declared without a shape", made=contents.HERE
        )
    else:
        named_ = replace(inner, shape=tuple(0 if size is None or size in ("", -1) else size for size in inner.shape))
        known = _declared(walk, t, named_, limits).shape or ()
        open_ = [size is None or size in ("", -1) for size in inner.shape]
        form = contents.Content("", inner.element, tuple(VARIES if o else k for o, k in zip(open_, known, strict=True)))
    return contents.Content(f"t{t}", type_name(declared), None, items=contents.Items(length, None, (form,)))


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
    if key not in walk.remembered:
        facts = (*walk.known.facts, *walk.path)
        walk.remembered[key] = examine(site, facts, walk.known.symbols, walk.possible), site
    examined, _ = walk.remembered[key]
    take(
        walk,
        n,
        site,
        contents.renamed(examined, contents.names(n, node.outputs, site, examined), contents.tensors(site)),
    )


def _misuse(node: Node) -> str:
    """The part of a node that its operator cannot read, in words: an attribute of another kind; empty where there is
    nothing."""
    known = schema(node.domain, node.op_type, node.version)
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
                        n if demand.made == contents.HERE else demand.made,
                    )
                )
    _last(walk, examined)
    for t, content in zip(walk.model.nodes[n].outputs, examined.outputs, strict=True):
        if t is not None and content is not None:
            settle(walk, n, t, content)


def _last(walk: Walk, examined: contents.Examined) -> None:
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
    used: frozenset[str] = frozenset().union(*map(contents.mentioned, terms)) if terms else frozenset()
    goals = [demand.goal for demand in examined.demands if demand.goal is not None]
    used |= {
        name
        for goal in goals
        for name in contents.mentioned(goal)
        if name in examined.symbols and contents.ELEMENT.match(name)
    }
    defined = {
        name: contents.mentioned(value) & examined.symbols.keys() for name, value in definitions(examined.facts).items()
    }
    while more := frozenset().union(*(own for name, own in defined.items() if name in used)) - used:
        used |= more
    lasting = walk.known.symbols.keys() | used
    for fact in examined.facts:
        if fact in walk.known.facts or fact in walk.path:
            continue
        if all(name in lasting or name not in examined.symbols for name in contents.mentioned(fact)):
            if walk.path:
                fact = Term("=>", (walk.path[0] if len(walk.path) == 1 else Term("and", walk.path), fact))
            walk.known.facts[fact] = None
    walk.known.symbols.update({name: s for name, s in examined.symbols.items() if name in used})
