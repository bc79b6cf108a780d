"""A rewrite at a place: where its left side stands, whether its conditions hold there, and what its right side is.

Everything is read off the text of the rewrite and evaluated by the rechecker's own evaluator; what is not certain from
declared types, stored values and the shapes that are derived here does not count.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import onnx
from lark import Tree

from ..operators.evaluating import applied, evaluate, truth
from ..operators.formulas import Formula
from ..operators.node import Site, bind, compose, opening
from ..operators.schema import attribute_value, defaults, schema_of
from ..operators.text import Node as Text
from ..operators.text import Operator, TextError
from ..operators.values import STEPS, Closure, Dead, Element, Open, Run, Tensor, Value, Withheld
from ..paths import quoted
from .graphs import Node, State
from .rules import Condition, Rewrite, Shared, names_in


class Unshown(Exception):  # noqa: N818 - an answer
    """It cannot be derived here that a step may be done: `refutes` where it can be seen that it may not."""

    def __init__(self, reason: str, *, refutes: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.refutes = refutes


def open_reason(reason: str) -> Unshown:
    """Something is not derived here."""
    return Unshown(reason, refutes=False)


@dataclass(slots=True)
class Match:
    """A place. nodes: of the applications of the left side, each behind those whose results it reads. attributes:
    bound ones, None for one that is not there. closed: expressions with the values that they should have. results: of
    which node and as which output. types: of the type variables. named: the ports by what their values are called."""

    rule: Rewrite
    nodes: list[int] = field(default_factory=list)
    ports: dict[str, int | None] = field(default_factory=dict)
    attributes: dict[str, Value | None] = field(default_factory=dict)
    closed: list[tuple[Text, Value | None]] = field(default_factory=list)
    results: dict[str, tuple[int, int]] = field(default_factory=dict)
    given: dict[int, int] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)


# ---- The left side ------------------------------------------------------------------------------


def matched(state: State, rule: Rewrite, root: int, swapped: Mapping[int, str]) -> Match:
    """The match of a rule with its root at a node. swapped: the applications, by position, whose operands stand in the
    other order. Raises Unshown."""
    match = Match(rule)
    results = [it.name for it in rule.head.outputs]
    first = rule.line(results[0])
    if first is None:
        raise open_reason(f"{rule.name} has a left side of a form that is not known here")
    _Matching(state, match, swapped, state.nodes[root].graph).application(first[0], root)
    for name in results:
        found = rule.line(name)
        if found is None or id(found[0]) not in match.given:
            raise open_reason(f"{rule.name} has a result that its first one does not come to")
        match.results[name] = match.given[id(found[0])], found[1]
    if len({n for n, _ in match.results.values()}) > 1:
        raise open_reason(f"{rule.name} replaces several nodes at once, of which Replacement does not speak")
    if set(rule.head.inputs) and {it.name for it in rule.head.inputs} - match.ports.keys():
        raise open_reason(f"{rule.name} has a port that its first result does not come to")
    return match


@dataclass(slots=True)
class _Matching:
    state: State
    match: Match
    swapped: Mapping[int, str]
    graph: int

    def application(self, tree: Text, n: int) -> None:
        """The application stands at the node."""
        state, match = self.state, self.match
        if id(tree) in match.given:
            if match.given[id(tree)] != n:
                raise Unshown(f"{match.rule.name} does not match: two nodes stand for one")
            return
        name, version, *rest = tree.children
        wanted = state.library.operator(str(name), int(str(version)))
        node = state.nodes[n]
        if wanted is None or node.text is not wanted or node.bodies or node.version is None:
            raise Unshown(
                f"{match.rule.name} does not match: node {n} is {node.op_type}, where {name}@{version} is due"
            )
        match.given[id(tree)] = n
        self.attributes(tree, node, wanted, str(name), int(str(version)))
        operands = [it for it in rest if isinstance(it, Tree) and it.data != "keyword"]
        # operands inside come first, so the position of an application is known once they are matched
        given = _trimmed(node.inputs)
        flipped = self.flips(tree)
        if flipped:
            if len(given) != 2 or len(operands) != 2:
                raise Unshown(f"{match.rule.name}: operands that are not two cannot change places")
            given = given[::-1]
        for k in range(max(len(given), len(operands))):
            self.operand(operands[k] if k < len(operands) else None, given[k] if k < len(given) else None)
        for k, it in enumerate(operands):
            self.typed(it, given[k] if k < len(given) else None, str(name), int(str(version)), k, flipped=flipped)
        match.nodes.append(n)

    def flips(self, tree: Text) -> bool:
        """The operands of the application stand in the other order."""
        return order(self.match.rule).get(id(tree), -1) in self.swapped

    def operand(self, tree: Text | None, t: int | None) -> None:
        """The tensor, or none, is what an operand says."""
        match, rule = self.match, self.match.rule
        if tree is None or (tree.data == "var" and str(tree.children[0]) == "_"):
            if t is not None:
                raise Unshown(f"{rule.name} does not match: a node reads more than its left side")
            return
        tree, output = resolved(rule, tree)
        if tree.data == "apply":
            made = None if t is None else self.state.producers.get(t)
            if t is None or made is None or made[1] != output or self.state.home[t] != self.graph:
                raise Unshown(f"{rule.name} does not match: an operand is no result of the node that is due")
            if self.state.nodes[made[0]].graph != self.graph:
                raise Unshown(f"{rule.name} does not match: its nodes are not in one graph")
            self.application(tree, made[0])
            return
        port = next((it for it in rule.head.inputs if tree.data == "var" and it.name == str(tree.children[0])), None)
        if port is None:
            raise open_reason(f"{rule.name} has a left side of a form that is not known here")
        if t is None and port.mark != "?":
            raise Unshown(f"{rule.name} does not match: the port {port.name} is left out")
        if match.ports.setdefault(port.name, t) != t:
            raise Unshown(f"{rule.name} does not match: the port {port.name} is two tensors")

    def typed(self, tree: Text, t: int | None, name: str, version: int, place: int, *, flipped: bool) -> None:
        """The operator, as the rule writes it, takes the element type of an operand."""
        if t is not None:
            admits(
                self.state, name, version, 1 - place if flipped else place, kind_of(self.state, t), self.match.rule.name
            )

    def attributes(self, tree: Text, node: Node, text: Operator, name: str, version: int) -> None:
        """The attributes of a node are those that the application says, or the usual ones."""
        match, rule = self.match, self.match.rule
        written = {key: value_of(it) for key, it in node.attributes.items()}
        usual, due = defaults(text, node.version or version), defaults(text, version)
        named = {
            str(it.children[0]): it.children[1] for it in tree.children if isinstance(it, Tree) and it.data == "keyword"
        }
        for key, expression in named.items():
            value = written.get(key, usual.get(key))
            own = str(expression.children[0]) if isinstance(expression, Tree) and expression.data == "var" else ""
            if (isinstance(expression, Tree) and own and own not in rule.known()) or own in {
                it.name for it in rule.declared
            }:
                if value is None and not optional(name, version, key):
                    raise Unshown(f"{rule.name} does not match: the attribute {key} is missing")
                if own in match.attributes and not same(match.attributes[own], value):
                    raise Unshown(f"{rule.name} does not match: {own} is two values")
                match.attributes[own] = value
            elif isinstance(expression, Tree):
                match.closed.append((expression, value))
        for key in usual.keys() | written.keys() | due.keys():
            if key not in named and not same(written.get(key, usual.get(key)), due.get(key)):
                raise Unshown(f"{rule.name} does not match: the attribute {key} of a node is not the usual one")


def resolved(rule: Rewrite, tree: Text) -> tuple[Text, int]:
    """The application or the port that an operand is, and which result of it."""
    output = 0
    for _ in range(len(rule.left) + len(rule.shared) + 1):
        if tree.data != "var":
            break
        found = rule.line(str(tree.children[0])) or rule.let(str(tree.children[0]))
        if found is None:
            break
        tree, output = found
    return tree, output


def order(rule: Rewrite) -> Mapping[int, int]:
    """The position of each application of the left side: operands before what reads them, as they are written."""
    found: dict[int, int] = {}

    def visit(tree: Text, depth: int = 0) -> None:
        tree, _ = resolved(rule, tree)
        if tree.data != "apply" or id(tree) in found or depth > len(rule.left) + 100:
            return
        for it in tree.children[2:]:
            if isinstance(it, Tree) and it.data != "keyword":
                visit(it, depth + 1)
        found.setdefault(id(tree), len(found))

    for it in rule.head.outputs:
        line = rule.line(it.name)
        if line is not None:
            visit(line[0])
    return found


def _trimmed(tensors: Sequence[int | None]) -> tuple[int | None, ...]:
    listed = list(tensors)
    while listed and listed[-1] is None:
        listed.pop()
    return tuple(listed)


def value_of(item: onnx.AttributeProto) -> Value | None:
    """The value of an attribute that a node writes. Raises Unshown for one that is not known, -0.0 among them, which is
    no exact number of its own."""
    one_value(item)
    if any(number == 0 and np.signbit(number) for number in (item.f, *item.floats)):
        raise open_reason("an attribute is -0.0, which is not told apart here")
    try:
        value = attribute_value(item)
    except Open as problem:
        raise open_reason(f"an attribute is not followed here: {problem.reason}") from None
    if any("\ufffd" in it for it in (value if isinstance(value, tuple) else (value,)) if isinstance(it, str)):
        raise open_reason("an attribute is a text that is not UTF-8")
    return value


_FIELDS = ("", "f", "i", "s", "t", "g", "floats", "ints", "strings", "tensors", "graphs", "sparse_tensor",
           "sparse_tensors", "tp", "type_protos")  # fmt: skip
"""The field that holds the value of an attribute, by its type (ONNX 1.23.2, onnx.proto, AttributeProto)."""


def one_value(item: onnx.AttributeProto) -> None:
    """Raises Unshown for an attribute of which readers take different fields to be its value."""
    held = {it.name for it, _ in item.ListFields()} - {"name", "type", "doc_string", "ref_attr_name"}
    if len(held) > 1 or (item.type and not held <= {_FIELDS[item.type]}):
        raise open_reason(f"the attribute {quoted(item.name)} has a value besides that of its type")


def same(one: object, other: object) -> bool:
    """Two values of attributes are the same."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, int | Fraction) and isinstance(other, int | Fraction) and bool not in (type(one), type(other)):
        return one == other
    return type(one) is type(other) and not isinstance(one, Tensor) and one == other


def optional(name: str, version: int, key: str) -> bool:
    """An attribute of an operator may be left out."""
    schema = schema_of(name, version)
    return schema is not None and key in schema.attributes and not schema.attributes[key].required


def admits(state: State, name: str, version: int, place: int, kind: str, rule: str) -> None:
    """Raises Unshown where a version of an operator does not take an element type at a place."""
    schema, text = schema_of(name, version), state.library.operator(name, version)
    if schema is not None and schema.inputs:
        admitted = {str(it) for it in schema.inputs[min(place, len(schema.inputs) - 1)].types}
    elif schema is None and text is not None and text.inputs:
        port = text.inputs[min(place, len(text.inputs) - 1)]
        declared = dict(text.types)
        admitted = {f"tensor({it})" for stated in (port.type, *port.others) for it in declared.get(stated, (stated,))}
    else:
        raise Unshown(f"{rule}: {name}-{version} has no inputs")
    if not kind:
        raise open_reason(f"{rule}: the element type of a tensor is not known")
    if f"tensor({kind})" not in admitted:
        raise Unshown(f"{rule}: {name}-{version} does not admit {kind}")


def kind_of(state: State, t: int) -> str:
    """The element type of a tensor, "" where it is not known."""
    content = state.walk.contents.get(t)
    return content.kind if isinstance(content, Tensor) else ""


# ---- Conditions ---------------------------------------------------------------------------------


def opened_names(state: State, match: Match) -> dict[str, Value]:
    """What the names of a rule stand for at a place. Raises Unshown where its ports do not have such shapes."""
    rule, run = match.rule, state.walk.run
    inputs: list[Value | None] = []
    for port in rule.head.inputs:
        t = match.ports[port.name]
        if t is None:
            inputs.append(None)
            continue
        content = state.walk.contents.get(t)
        if not isinstance(content, Tensor) or content.shape is None or not content.kind:
            raise open_reason(f"{rule.name}: the shape or the type of {port.name} is not known")
        if port.name in rule.stored and not state.stored(t):
            raise Unshown(f"{rule.name}: {port.name} is no stored value")
        if not state.stored(t) and content.constant is not None:
            content = replace(content, constant=None, memory={})
        match.named[content.name] = t
        inputs.append(content)
        _suits(match, port.type, content.kind)
    attributes = {**{it.name: None for it in rule.declared}, **match.attributes}
    env = opening(Site(rule.name, rule.head, 1, tuple(inputs), attributes, (True,) * len(rule.head.outputs)))
    for port in rule.head.outputs:
        env.pop(port.name, None)
    try:
        goal = bind(rule.head, env)
    except Dead:
        raise Unshown(f"{rule.name} does not match: its ports have other numbers of axes") from None
    _certain(run, goal, f"{rule.name}: the sizes of its ports agree")
    for it in rule.shared:
        run.steps = STEPS
        env |= _let(it, env, run)
    return env


def _suits(match: Match, stated: str, kind: str) -> None:
    """A port may have an element type: that which the rule says, or the one that a variable stands for."""
    rule = match.rule
    if stated in KINDS:
        if kind != stated:
            raise Unshown(f"{rule.name} does not match: {kind} is not {stated}")
    elif match.types.setdefault(stated, kind) != kind:
        raise Unshown(f"{rule.name} does not match: {stated} is two element types")
    elif stated in rule.types and kind not in rule.types[stated]:
        raise Unshown(f"{rule.name} is not about {kind}")


KINDS = frozenset(name.lower() for name in onnx.TensorProto.DataType.keys())  # noqa: SIM118 - no dictionary


def _let(it: Shared, env: Mapping[str, Value], run: Run) -> dict[str, Value]:
    """A shared definition; where it has no value, what uses it has none."""
    if it.kind == "function":
        parameters = it.tree.children[1]
        names = (
            tuple(str(p.children[0]) for p in parameters.children if isinstance(p, Tree))
            if isinstance(parameters, Tree)
            else ()
        )
        body = it.tree.children[2]
        return {it.names[0]: Closure(names, body, dict(env))} if isinstance(body, Tree) else {}
    expression = it.tree.children[-1]
    try:
        if isinstance(expression, Tree) and expression.data == "apply":
            values = applied(expression.children, env, run)
        else:
            value = evaluate(expression, env, run)
            values = (value,) if len(it.names) == 1 else value if isinstance(value, tuple) else ()
    except (Open, Dead, TextError) as problem:
        return dict.fromkeys(it.names, Withheld(f"{it.names[0]}: {_words(problem)}"))
    if len(values) < len(it.names):
        return dict.fromkeys(it.names, Withheld(f"{it.names[0]} has no value"))
    return dict(zip(it.names, values, strict=False))


def _words(problem: Exception) -> str:
    return problem.reason if isinstance(problem, Open) else "it has no value"


def _certain(run: Run, goal: Formula, what: str) -> None:
    known = run.decided(goal)
    if known is False:
        raise Unshown(f"{what}: it does not hold here")
    if known is None:
        raise open_reason(f"{what}: it is not derived here")


def conditions(state: State, match: Match, env: Mapping[str, Value]) -> tuple[str, ...]:
    """What the rule assumes of values, where all that it asks for is certain. Raises Unshown."""
    rule, run = match.rule, state.walk.run
    for expression, value in match.closed:
        found = _evaluated(expression, env, run, f"{rule.name}: an attribute")
        if not same(found, value):
            raise Unshown(f"{rule.name} does not match: an attribute has another value than is due")
    whole = dict(env)
    for side in rule.left:
        whole |= {name: Withheld("a result of the left side") for name in side.names if name not in whole}
    for it in rule.when:
        run.steps = STEPS
        _certain(run, _truth(it, whole, run, rule.name), f"{rule.name}: {it.sentence}")
    assumed = []
    for it in rule.where:
        run.steps = STEPS
        try:
            known = run.decided(truth(it.expression, whole, run))
        except (Open, Dead, TextError):
            known = None
        if known is False:
            raise Unshown(f"{rule.name}: {it.sentence}: it does not hold here")
        if known is None:
            assumed.append(it.sentence)
    return tuple(assumed)


def _truth(it: Condition, env: Mapping[str, Value], run: Run, rule: str) -> Formula:
    try:
        return truth(it.expression, env, run)
    except Dead:
        raise Unshown(f"{rule}: {it.sentence}: it has no value here") from None
    except (Open, TextError) as problem:
        raise open_reason(f"{rule}: {it.sentence}: {_words(problem)}") from None


def _evaluated(expression: Text, env: Mapping[str, Value], run: Run, what: str) -> Value:
    run.steps = STEPS
    try:
        return evaluate(expression, env, run)
    except Dead:
        raise Unshown(f"{what} has no value here") from None
    except (Open, TextError) as problem:
        raise open_reason(f"{what}: {_words(problem)}") from None


# ---- The right side -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Made:
    """A node of the right side. inputs: tensors, results of other such nodes by number and position, or nothing.
    attributes: spelled as a certificate has them. contents: what is known of its results."""

    name: str
    version: int
    inputs: tuple[int | tuple[int, int] | None, ...]
    attributes: Mapping[str, list[object]]
    contents: tuple[Tensor, ...]
    kinds: tuple[str, ...]


@dataclass(slots=True)
class _Emitting:
    match: Match
    nodes: list[Made] = field(default_factory=list)
    named: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __call__(
        self, name: str, version: int, inputs: Sequence[Value | None], attributes: Mapping[str, Value], run: Run
    ) -> tuple[Value, ...]:
        run.compose = compose
        try:
            outputs = compose(name, version, inputs, attributes, run)
        finally:
            run.compose = self
        sources = tuple(map(self.source, inputs))
        kinds = tuple(it.kind if isinstance(it, Tensor) else "" for it in inputs)
        spelled = {key: spelled_attribute(value) for key, value in attributes.items()}
        tensors = tuple(it for it in outputs if isinstance(it, Tensor))
        if len(tensors) < len(outputs):
            raise open_reason(f"{self.match.rule.name}: {name} gives something else than tensors")
        tensors = tuple(replace(it, name=run.name("new")) for it in tensors)
        self.named |= {it.name: (len(self.nodes), k) for k, it in enumerate(tensors)}
        self.nodes.append(Made(name, version, sources, spelled, tensors, kinds))
        return tensors

    def source(self, value: Value | None) -> int | tuple[int, int] | None:
        """What a value is in the graph."""
        if value is None:
            return None
        if isinstance(value, Tensor) and value.name in self.named:
            return self.named[value.name]
        if isinstance(value, Tensor) and value.name in self.match.named:
            return self.match.named[value.name]
        raise open_reason(f"{self.match.rule.name}: its right side reads what no node gives")


def right_side(
    state: State, match: Match, env: Mapping[str, Value]
) -> tuple[list[Made], dict[str, int | tuple[int, int] | None]]:
    """The nodes of the right side, and what each result is. Raises Unshown."""
    rule, run = match.rule, state.walk.run
    emitting = _Emitting(match)
    names = {name for it in rule.right for name in names_in(it.expression)}
    needed: list[Shared] = []
    for it in reversed(rule.shared):
        if names & set(it.names):
            needed.append(it)
            names |= set(names_in(it.tree))
    lets = [it for it in reversed(needed) if it.kind == "alias"]
    lines = [
        *((it.names, it.tree.children[-1], True) for it in lets),
        *((it.names, it.expression, False) for it in rule.right),
    ]
    inner = dict(env)
    results: dict[str, int | tuple[int, int] | None] = {}
    run.compose, run.steps = emitting, STEPS
    try:
        for given, expression, shared in lines:
            if not isinstance(expression, Tree):
                continue
            if expression.data == "apply":
                values = applied(expression.children, inner, run)
            elif shared and not any(it.data == "apply" for it in expression.iter_subtrees()):
                continue  # it is known already
            else:
                value = evaluate(expression, inner, run)
                values = (value,) if len(given) == 1 else value if isinstance(value, tuple) else ()
            if len(values) < len(given):
                raise Unshown(f"{rule.name}: its right side has no value here")
            inner |= dict(zip(given, values, strict=False))
        for port in rule.head.outputs:
            results[port.name] = emitting.source(inner[port.name])
    except Dead:
        raise Unshown(f"{rule.name}: its right side has no value here") from None
    except (Open, TextError) as problem:
        raise open_reason(f"{rule.name}: its right side: {_words(problem)}") from None
    finally:
        run.compose = compose
    return emitting.nodes, results


def spelled_attribute(value: Value) -> list[object]:
    """The value of an attribute as a certificate has it: its kind, and its entries as texts."""
    entries = value if isinstance(value, tuple) else (value,)
    plain = [_plain(it) for it in entries]
    kinds = {kind for kind, _ in plain}
    if kinds == {"INT", "FLOAT"}:
        plain = [("FLOAT", float_bits(float(text)) if kind == "INT" else text) for kind, text in plain]
        kinds = {"FLOAT"}
    if len(kinds) > 1:
        raise open_reason("an attribute is a list of several kinds")
    kind = next(iter(kinds), "INT")
    return [kind + "S" * isinstance(value, tuple), [text for _, text in plain]]


def _plain(value: Value) -> tuple[str, str]:
    match value:
        case bool():
            raise open_reason("an attribute is a truth value")
        case int():
            return "INT", str(value)
        case str():
            return "STRING", value.encode("utf-8", "surrogateescape").hex()
        case Fraction():
            near = np.float32(float(value))
            if Fraction(float(near)) != value:
                raise Unshown(f"{value} is no float")
            return "FLOAT", float_bits(float(near))
        case Element(value=np.floating() as number):
            return "FLOAT", float_bits(float(number))
        case _:
            raise open_reason("an attribute depends on more than is known here")


def float_bits(number: float) -> str:
    """The bits of a float of an attribute, eight hexadecimal digits."""
    return struct.pack(">f", number).hex()
