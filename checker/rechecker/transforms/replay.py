"""The steps of a transform, done again: each only where the theorem of part 6 that allows it is seen to apply.

What is shown in the end: the model that the steps lead to is the one that the certificate is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import onnx
from lark import Tree

from ..operators import elements as el
from ..operators.lists import NAMES
from ..operators.schema import defaults, schema_of
from ..operators.text import Operator, Port, TextError
from ..operators.values import Constant, Dead, Tensor
from ..paths import quoted
from .folding import folded
from .folding import spelled as spelled_values
from .graphs import Node, State, Stored, opened, raw_digest
from .matching import (
    Made,
    Match,
    Unshown,
    admits,
    conditions,
    float_bits,
    kind_of,
    matched,
    one_value,
    open_reason,
    opened_names,
    order,
    right_side,
)
from .record import Proof, proof_of
from .rules import STRENGTHS, Rewrite, names_in, rewrite

Object = Mapping[str, Any]
THEOREMS: Final = {
    "rewrite": ("Replacement", "Redirection", "MatchIsApart"),
    "fold": ("ConstantFolding",),
    "merge": ("CommonSubexpressions",),
    "share": ("Redirection",),
    "drop": ("Pruning",),
    "raise": (),
}
"""The theorems of part 6 that allow a step, by what it does."""
FIXED: Final = 4
"""The IR version since which stored values need not be inputs (ONNX 1.23.2, IR.md, Graphs)."""
LARGEST: Final = 1 << 40
"""No tensor and no node has a greater number."""


@dataclass(slots=True)
class Replay:
    """Steps done again. claims: of the rules that were used. assumed: of values. trusted: what nobody but the
    certificate says, in words. theorems: that allow the steps. sentences: what the rules may
    assume of values."""

    state: State
    rules: Object
    drawn: frozenset[str]
    claims: set[str] = field(default_factory=set)
    used: dict[str, str] = field(default_factory=dict)
    assumed: dict[str, None] = field(default_factory=dict)
    trusted: list[str] = field(default_factory=list)
    theorems: dict[str, None] = field(default_factory=dict)
    sentences: set[str] = field(default_factory=set)
    _rewrites: dict[str, tuple[Rewrite, Proof]] = field(default_factory=dict)

    def run(self, steps: Sequence[Object]) -> None:
        """Does the steps. Raises Unshown for the first that is not seen to be allowed, with its number."""
        for number, step in enumerate(steps):
            try:
                _DO[step["do"]](self, step)
            except Unshown as problem:
                raise Unshown(f"step {number} ({step['do']}): {problem.reason}", refutes=problem.refutes) from None
            except (KeyError, IndexError):
                raise Unshown(f"step {number} ({step['do']}): it speaks of something that is not there") from None
            except Dead:
                raise Unshown(f"step {number} ({step['do']}): the text has no value there") from None
            except TextError as problem:
                raise open_reason(f"step {number} ({step['do']}): {problem}") from None
            for theorem in THEOREMS[step["do"]]:
                self.theorems[theorem] = None

    def rule(self, name: str) -> tuple[Rewrite, Proof]:
        """A rule of the text that may be used, and its proof on record. Raises Unshown."""
        if name not in self._rewrites:
            found = rewrite(self.state.library, name)
            if found is None:
                raise Unshown(f"there is no rewrite {quoted(name)} in the text that is installed")
            if found.claim not in STRENGTHS:
                raise Unshown(f"{name} is a rewrite that is never right")
            proof = proof_of(found, self.state.library)
            if isinstance(proof, str):
                raise open_reason(proof)
            stated = self.rules.get(name)
            rests = {"claim": found.claim, "proof": proof.digest, "text": self.state.library.rests_on(name)}
            if stated != rests:
                raise Unshown(f"the certificate rests on another text, proof or claim of {name} than there is")
            self._rewrites[name] = found, proof
        found, proof = self._rewrites[name]
        self.claims.add(found.claim)
        self.used[name] = proof.digest
        self.sentences |= {it.sentence for it in found.where}
        return found, proof

    # ---- Rewrites ---------------------------------------------------------------------------------

    def rewritten(self, step: Object) -> None:
        """A rewrite (Replacement; where a result is a tensor that is there already, Redirection)."""
        state = self.state
        rule, proof = self.rule(step["rule"])
        root = step["nodes"][-1]
        if root in state.nodes and shows_nan(state, root):
            raise open_reason(f"BitCast shows which NaN stands where {rule.name} is applied; rewrites do not keep it")
        match = matched(state, rule, root, self._swapped(rule, step["swapped"]))
        if match.nodes != step["nodes"]:
            raise Unshown(f"{rule.name} stands at the nodes {match.nodes}, not at {step['nodes']}")
        for position, name in step["swapped"]:
            self._commutes(name, match, position)
        self._covered(rule, proof, match)
        names = opened_names(state, match)
        for sentence in conditions(state, match, names):
            self.assumed[sentence] = None
        made, results = right_side(state, match, names)
        self._replaced(match, made, results, step)

    def _swapped(self, rule: Rewrite, listed: Sequence[Any]) -> Mapping[int, str]:
        swapped = dict(listed)
        if len(swapped) < len(listed) or not set(swapped) <= set(order(rule).values()):
            raise Unshown("applications whose operands changed places are listed wrongly")
        return swapped

    def _commutes(self, name: str, match: Match, position: int) -> None:
        """The rewrite says that the operands of an operator may change places, without any condition. Whether one
        of them is stored is of no importance then: it says where the rule is used, and the proof is for any value."""
        rule, proof = self.rule(name)
        node = self.state.nodes[match.nodes[position]]
        if rule.claim != "exact" or rule.when or rule.shared or len(rule.left) != 1 or len(rule.right) != 1:
            raise Unshown(f"{name} does not say that operands may change places")
        sides = [it.expression for it in (rule.left[0], rule.right[0])]
        spelled = [[str(part) for part in it.children[:2]] for it in sides]
        read = [[_plain_name(part) for part in it.children[2:] if part is not None] for it in sides]
        ports = [it.name for it in rule.head.inputs]
        if any(it.data != "apply" for it in sides) or spelled[0] != spelled[1] or read[0] != read[1][::-1]:
            raise Unshown(f"{name} does not say that operands may change places")
        if sorted(read[0]) != sorted(ports) or len(ports) != 2:
            raise Unshown(f"{name} does not say that operands may change places")
        if self.state.library.operator(spelled[0][0], int(spelled[0][1])) is not node.text:
            raise Unshown(f"{name} is about another operator than {node.op_type}")
        kinds = [kind_of(self.state, t) for t in node.inputs if t is not None]
        for k, kind in enumerate(kinds):
            admits(self.state, spelled[0][0], int(spelled[0][1]), k, kind, name)
            if any(kind not in admitted for admitted in rule.types.values()):
                raise Unshown(f"{name} is not about {kind}")
        tensors = dict(enumerate(node.inputs))
        self._within(rule, proof, {str(k): t for k, t in tensors.items()}, ())

    def _covered(self, rule: Rewrite, proof: Proof, match: Match) -> None:
        lists = [len(it) for it in match.attributes.values() if isinstance(it, tuple)]
        listed = [port for port in rule.head.inputs if proof.lists is not None and proof.counts(port)]
        lists += [self._length(rule, port, t) for port in listed if (t := match.ports[port.name]) is not None]
        self._within(rule, proof, match.ports, lists)

    def _length(self, rule: Rewrite, port: Port, t: int) -> int:
        """How many entries a list has that a port gives."""
        content = self.state.walk.contents.get(t)
        shape = content.shape if isinstance(content, Tensor) else None
        size = shape[0] if shape is not None and len(shape) == len(port.shape or ()) == 1 else None
        if not isinstance(size, int):
            raise open_reason(f"{rule.name}: how many entries {port.name} has is not known")
        return size

    def _within(self, rule: Rewrite, proof: Proof, ports: Mapping[str, int | None], lists: Sequence[int]) -> None:
        """The proof goes as far as the place needs it."""
        for name, t in ports.items():
            content = None if t is None else self.state.walk.contents.get(t)
            if t is None or proof.axes is None:
                continue
            if not isinstance(content, Tensor) or content.shape is None:
                raise open_reason(f"{rule.name}: how many axes {name} has is not known")
            if len(content.shape) > proof.axes:
                raise Unshown(f"{rule.name} is proved for up to {proof.axes} axes, {name} has {len(content.shape)}")
        if proof.lists is not None and any(length > proof.lists for length in lists):
            raise Unshown(f"{rule.name} is proved for lists of up to {proof.lists}")

    def _replaced(
        self, match: Match, made: Sequence[Made], results: Mapping[str, int | tuple[int, int] | None], step: Object
    ) -> None:
        """The new nodes are those of the right side, and stand where the root stood."""
        state, rule = self.state, match.rule
        root = step["nodes"][-1]
        node = state.nodes[root]
        taken: dict[tuple[int, int], int] = {}
        instead: list[list[int]] = []
        for name, (_, output) in match.results.items():
            t, source = node.outputs[output] if output < len(node.outputs) else None, results[name]
            if t is None or source is None:
                raise Unshown(f"{rule.name}: a result is not there")
            if isinstance(source, tuple):
                if taken.setdefault(source, t) != t:
                    raise Unshown(f"{rule.name}: two results are one output of a new node")
                continue
            if state.kept(t) or source == t:
                raise Unshown(f"{rule.name}: {quoted(state.names[t])} is given out and has to be written")
            instead.append([t, source])
        if instead != step["instead"] or len(made) != len(step["made"]):
            raise Unshown(f"{rule.name} has another right side there")
        gone = {*taken.values(), *(t for t, _ in instead)}
        fresh = _Fresh(state)
        read = [it for due in made for it in due.inputs if isinstance(it, tuple)]
        read += [it for it in results.values() if isinstance(it, tuple)]
        listed: list[tuple[int, Node]] = []
        outputs_of: dict[tuple[int, int], int] = {}
        for number, (due, stated) in enumerate(zip(made, step["made"], strict=True)):
            if len(stated["outputs"]) != 1 + max((k for n, k in read if n == number), default=0):
                raise Unshown(f"{rule.name}: a new node has more or fewer results than are read")
            outputs: list[int | None] = []
            for k, it in enumerate(stated["outputs"]):
                if it is None:
                    raise Unshown(f"{rule.name}: a result of a new node is left out")
                t, name = it
                if (number, k) in taken:
                    if t != taken[number, k] or name != state.names[t]:
                        raise Unshown(f"{rule.name}: a new node does not write the result")
                else:
                    fresh.tensor(t, name, node.graph)
                outputs.append(t)
                outputs_of[number, k] = t
                if k < len(due.contents) and (number, k) not in taken:
                    content = due.contents[k]
                    state.walk.contents[t] = Tensor(f"t{t}", content.kind, content.shape, content.read)
            listed.append((stated["node"], self._new(rule, due, stated, tuple(outputs), outputs_of, node.graph)))
        if any(source not in outputs_of for source in taken):
            raise Unshown(f"{rule.name}: a result is written by no new node")
        left: list[int | None] = []
        if len(step["left"]) != len(node.outputs):
            raise Unshown(f"{rule.name}: the root writes something else than before")
        for t, it in zip(node.outputs, step["left"], strict=True):
            if (t is None) != (it is None):
                raise Unshown(f"{rule.name}: the root writes something else than before")
            if t is not None and t in gone:
                fresh.tensor(it[0], it[1], node.graph)
            elif t is not None and it != [t, state.names[t]]:
                raise Unshown(f"{rule.name}: the root writes something else than before")
            left.append(None if it is None else it[0])
        for n, new in listed:
            fresh.node(n)
            state.enter(n, new)
        for t in gone:
            if state.producers.get(t, (None, 0))[0] == root:
                del state.producers[t]
        state.enter(root, replace(node, outputs=tuple(left)))
        for t, other in instead:
            state.read_instead(t, other)

    def _new(
        self,
        rule: Rewrite,
        due: Made,
        stated: Object,
        outputs: tuple[int | None, ...],
        made: Mapping[tuple[int, int], int],
        graph: int,
    ) -> Node:
        """A new node, where it is as the right side has it."""
        state = self.state
        domain, _, op_type = due.name.rpartition("::")
        domain = "" if domain == "ai.onnx" else domain
        text = state.library.operator(due.name, due.version)
        version = stated["version"]
        if (stated["domain"], stated["op_type"]) != (domain, op_type) or text is None:
            raise Unshown(f"{rule.name}: a new node is {due.name}, not {stated['op_type']}")
        if state.library.operator(due.name, version) is not text or not _is_version(due.name, version, text):
            raise Unshown(f"{rule.name}: {due.name}-{version} has another meaning than {due.name}@{due.version}")
        if dict(stated["attributes"]) != {key: list(it) for key, it in due.attributes.items()}:
            raise Unshown(f"{rule.name}: the attributes of {due.name} are not those of the right side")
        if not _same_defaults(text, due.version, version, stated["attributes"]):
            raise open_reason(f"{rule.name}: {due.name}-{version} has other defaults than {due.name}@{due.version}")
        inputs = tuple(made[it] if isinstance(it, tuple) else it for it in due.inputs)
        if list(inputs) != list(stated["inputs"]):
            raise Unshown(f"{rule.name}: {due.name} reads something else than on the right side")
        for k, kind in enumerate(due.kinds):
            if due.inputs[k] is not None:
                admits(state, due.name, version, k, kind, rule.name)
        attributes = {key: _attribute(key, it) for key, it in stated["attributes"].items()}
        return Node(graph, stated["name"], domain, op_type, "", text, version, inputs, outputs, attributes)

    # ---- The other steps --------------------------------------------------------------------------

    def fold(self, step: Object) -> None:
        """A node that stored values decide (ConstantFolding)."""
        state, n = self.state, step["node"]
        node = state.nodes[n]
        self._plain(node)
        if any(t is not None and not state.stored(t) for t in node.inputs):
            raise Unshown(f"{node.op_type} reads what is no stored value")
        if any(t is not None and state.kept(t) for t in node.outputs):
            raise Unshown(f"a result of {node.op_type} is given out, and has to be written")
        values = folded(state, n, node)
        stated = [None if it is None else {k: v for k, v in it.items() if k != "tensor"} for it in step["values"]]
        if [None if it is None else it["tensor"] for it in step["values"]] != list(node.outputs):
            raise Unshown(f"the values are not those of the results of {node.op_type}")
        if isinstance(values, str):
            self.trusted.append(f"the value of {node.op_type} that writes {_named(state, node)}: {values}")
            values = tuple(None if it is None else _trusted(it) for it in stated)
            for t, it in zip(node.outputs, values, strict=True):
                if t is not None and it is not None:
                    state.walk.contents[t] = Tensor(f"t{t}#{n}", it.kind, it.dims, constant=Constant(lambda: None))
        elif stated != spelled_values(values):
            raise Unshown(f"{node.op_type} gives other values than {_named(state, node)} is stated to have")
        state.leave(n)
        state.values |= {t: it for t, it in zip(node.outputs, values, strict=True) if t is not None and it is not None}

    def merge(self, step: Object) -> None:
        """Of two nodes that compute the same, one is read (CommonSubexpressions)."""
        state = self.state
        node, other = state.nodes[step["node"]], state.nodes[step["other"]]
        self._plain(node)
        if step["node"] == step["other"] or node.text is not other.text or node.version != other.version:
            raise Unshown("the two nodes are not the same operator")
        alike = (node.graph, node.inputs) == (other.graph, other.inputs)
        if not alike or not same_attributes(node.attributes, other.attributes):
            raise Unshown("the two nodes do not read the same in one graph, or have other attributes")
        if [it is None for it in node.outputs] != [it is None for it in other.outputs]:
            raise Unshown("the two nodes do not have the same results")
        if leaves_open(state, node):
            raise open_reason(
                f"the text of {node.op_type} leaves something open, so it is not seen here to be a function"
            )
        for t, it in zip(node.outputs, other.outputs, strict=True):
            if t is not None and it is not None:
                if state.kept(t):
                    raise Unshown("a result is given out, and has to be written")
                state.read_instead(t, it)
        state.leave(step["node"])

    def share(self, step: Object) -> None:
        """Of two stored values that are the same, one is read (Redirection)."""
        state, t, other = self.state, step["tensor"], step["other"]
        if t == other or not state.stored(t) or not state.stored(other) or state.home[t] != state.home[other]:
            raise Unshown("the two tensors are no stored values of one graph")
        if state.kept(t) or not state.values[t].same(state.values[other]):
            raise Unshown("the two stored values are not the same")
        state.read_instead(t, other)

    def drop(self, step: Object) -> None:
        """A dead node is left out (Pruning)."""
        if self.state.live([step["node"]]):
            raise Unshown("what the node writes is read, or given out")
        self.state.leave(step["node"])

    def raised(self, step: Object) -> None:
        """The model is of another operator set: nodes that have the same definition there stay; others are not kept
        to the end, since the last model is compared by definitions."""
        if step["opset"] < self.state.opsets.get("", 1):
            raise Unshown("an operator set is not raised but lowered")
        self.state.opsets[""] = step["opset"]

    def _plain(self, node: Node) -> None:
        """The node applies an operator whose text says what it gives, and that nothing is drawn."""
        for it in node.attributes.values():
            one_value(it)
        if node.text is None or node.bodies or any(it.kind == "meaning" for it in node.text.statements):
            raise Unshown(f"{node.op_type} is not applied by its text alone")
        if self.state.library.words(node.text) & self.drawn:
            raise Unshown(f"{node.op_type} draws its result")


def shows_nan(state: State, n: int) -> bool:
    """BitCast of floating-point numbers rests on what a node gives, in bodies too."""
    if not any(_shows_float(state, it) for it in state.nodes.values()):
        return False
    holders = {body: m for m, it in state.nodes.items() for body in it.bodies}
    waiting, seen = [n], {n}
    while waiting:
        node = state.nodes[waiting.pop()]
        written = {t for t in node.outputs if t is not None}
        reached = {m for t in written for m in state.readers.get(t, ())}
        reached |= {m for body in node.bodies for t in state.graphs[body].inputs for m in state.readers.get(t, ())}
        if any(_shows_float(state, state.nodes[m]) for m in reached):
            return True
        if node.graph in holders and written & set(state.graphs[node.graph].outputs):
            reached.add(holders[node.graph])
        waiting += reached - seen
        seen |= reached
    return False


def _shows_float(state: State, node: Node) -> bool:
    read = node.inputs[0] if node.inputs else None
    bits = node.op_type == "BitCast" and not node.domain
    return bits and read is not None and kind_of(state, read) in {*el.FLOATS, ""}


def leaves_open(state: State, node: Node) -> bool:
    """The text of a node may leave open what it gives, for all that is seen here: it says so, or converts to a type
    that has no value for some numbers (`cast`, spec/primitives.sonnx)."""
    if node.text is None:
        return True
    words = state.library.words(node.text)
    if words & {"arbitrary", "oneof"}:
        return True
    named = {name for it in node.text.statements for name in names_in(it.tree)}
    ports = [
        node.text.inputs[min(k, len(node.text.inputs) - 1)] for k in range(len(node.inputs) if node.text.inputs else 0)
    ]
    used = [t for t, port in zip(node.inputs, ports, strict=False) if t is not None and port.name in named]
    read = {kind_of(state, t) for t in used} & {*el.FLOATS, ""}
    written = {kind_of(state, t) for t in node.outputs if t is not None} - {*el.COMPUTED, "float16", "bfloat16", "bool"}
    return bool(words & {"cast", "saturate"} and read and written)


_DO: Final[Mapping[str, Callable[[Replay, Object], None]]] = {
    "rewrite": Replay.rewritten,
    "fold": Replay.fold,
    "merge": Replay.merge,
    "share": Replay.share,
    "drop": Replay.drop,
    "raise": Replay.raised,
}


@dataclass(frozen=True, slots=True)
class _Fresh:
    """New numbers: none has been used before."""

    state: State

    def tensor(self, t: int, name: str, graph: int) -> None:
        """A new tensor."""
        if t in self.state.names or not 0 <= t < LARGEST:
            raise Unshown(f"tensor {t} is not new")
        self.state.names[t] = name
        self.state.home[t] = graph

    def node(self, n: int) -> None:
        """A new node."""
        if not self.state.numbered <= n < LARGEST:
            raise Unshown(f"node {n} is not new")
        self.state.numbered = n + 1


def _plain_name(part: object) -> str:
    return str(part.children[0]) if isinstance(part, Tree) and part.data == "var" else ""


def _named(state: State, node: Node) -> str:
    return quoted(next((state.names[t] for t in node.outputs if t is not None), ""))


def _trusted(stated: Object) -> Stored:
    digest = stated["sha256"]
    return Stored(stated["element"], tuple(stated["dims"]), lambda: digest, trusted=True)


def _is_version(name: str, version: int, text: Operator) -> bool:
    """An operator has a version of that number."""
    schema = schema_of(name, version)
    return version == text.first if schema is None else schema.since_version == version


def _same_defaults(text: Operator, one: int, other: int, stated: Mapping[str, object]) -> bool:
    a, b = defaults(text, one), defaults(text, other)
    return one == other or all(a.get(key) == b.get(key) for key in a.keys() | b.keys() if key not in stated)


_KINDS: Final = {"INT": "i", "FLOAT": "f", "STRING": "s", "INTS": "ints", "FLOATS": "floats", "STRINGS": "strings"}


def _attribute(name: str, stated: Sequence[Any]) -> onnx.AttributeProto:
    """An attribute that a certificate states."""
    kind, texts = stated
    if kind not in _KINDS:
        raise Unshown(f"the attribute {name} is of no kind that a right side has")
    proto = onnx.AttributeProto(name=name, type=getattr(onnx.AttributeProto, kind))
    try:
        match kind.removesuffix("S"):
            case "INT":
                values: list[Any] = [int(it) for it in texts]
            case "FLOAT":
                values = [onnx.numpy_helper.to_array(_float(it)).item() for it in texts]
            case _:
                values = [bytes.fromhex(it) for it in texts]
        if kind.endswith("S"):
            getattr(proto, _KINDS[kind]).extend(values)
        else:
            (value,) = values
            setattr(proto, _KINDS[kind], value)
    except (ValueError, TypeError):
        raise Unshown(f"the attribute {name} is not spelled as one") from None
    return proto


def _float(bits: str) -> onnx.TensorProto:
    return onnx.TensorProto(data_type=onnx.TensorProto.FLOAT, raw_data=bytes.fromhex(bits)[::-1])


# ---- Attributes ---------------------------------------------------------------------------------


def same_attributes(one: Mapping[str, onnx.AttributeProto], other: Mapping[str, onnx.AttributeProto]) -> bool:
    """The attributes are the same, bit for bit; those that hold graphs are left to others."""
    for it in (*one.values(), *other.values()):
        one_value(it)
    kept = [{k: it for k, it in side.items() if not _holds_graphs(it)} for side in (one, other)]
    return kept[0].keys() == kept[1].keys() and all(_spelled(kept[0][k]) == _spelled(kept[1][k]) for k in kept[0])


def _holds_graphs(item: onnx.AttributeProto) -> bool:
    return (
        item.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) or item.HasField("g") or bool(item.graphs)
    )


def _spelled(item: onnx.AttributeProto) -> object:
    if item.ref_attr_name:
        raise open_reason("an attribute refers to one of a call")
    if item.HasField("t"):
        return "TENSOR", NAMES.get(item.t.data_type), list(item.t.dims), raw_digest(item.t, None)
    if item.HasField("sparse_tensor") or item.tensors or item.sparse_tensors:
        raise open_reason("an attribute of several or of sparse tensors is not compared here")
    copy = onnx.AttributeProto()
    copy.CopyFrom(item)
    copy.ClearField("doc_string")
    copy.ClearField("name")  # within a function it may be that of another attribute
    floats = [float_bits(it) for it in (item.f, *item.floats)]
    return copy.type, copy.SerializeToString(deterministic=True), floats


# ---- The last model -----------------------------------------------------------------------------


def leads_to(state: State, path: Path, names: Sequence[Any]) -> None:
    """The model that the steps lead to is the one in the file, node by node and name by name. Raises Unshown,
    ModelError and Unsupported."""
    last = opened(path, state.library, plain=True)
    called = {**state.names, **dict(names)}
    given = {t for t, _ in names}
    if not given <= state.names.keys() or len(given) < len(names) or any(state.names[t] == it for t, it in names):
        raise Unshown("a name is given to a tensor that is not there, or that has it already")
    if given & {*state.graphs[0].inputs, *state.graphs[0].outputs}:
        raise Unshown("an input or an output of the model is given another name")
    numbers: dict[str, int] = {}
    for t, name in last.names.items():
        if numbers.setdefault(name, t) != t:
            raise Unshown(f"two tensors of the last model are named {quoted(name)}")
    if any(state.opsets.get(domain, version) != version for domain, version in last.opsets.items()):
        raise Unshown("the last model is of another operator set than the steps lead to")
    first, made = (it.walk.graph.reading.proto.ir_version for it in (state, last))
    if made != first and not (first < FIXED == made):
        raise Unshown("the last model has another IR version than the steps lead to")
    comparing = _Comparing(state, last, called, numbers)
    comparing.graph(0, 0)
    if not given <= set(comparing.seen.values()):
        raise Unshown("a name is given to a tensor that the last model does not have")


@dataclass(slots=True)
class _Comparing:
    """Two models: `state` and the one of a file, with the names that tensors of the first have there."""

    state: State
    last: State
    called: Mapping[int, str]
    numbers: Mapping[str, int]
    seen: dict[int, int] = field(default_factory=dict)

    def tensor(self, t: int | None, u: int | None) -> None:
        """The two are one tensor."""
        if (t is None) != (u is None):
            raise Unshown("a node of the last model has an input or a result more or less")
        if t is None or u is None:
            return
        if self.called[t] != self.last.names[u] or self.seen.setdefault(u, t) != t:
            raise Unshown(f"{quoted(self.called[t])} is not {quoted(self.last.names[u])} of the last model")

    def tensors(self, ours: Sequence[int | None], theirs: Sequence[int | None]) -> None:
        """Lists of tensors are the same, but for ones that are left out at the end."""
        mine, other = _without_last(ours), _without_last(theirs)
        if len(mine) != len(other):
            raise Unshown("a node of the last model has an input or a result more or less")
        for t, u in zip(mine, other, strict=True):
            self.tensor(t, u)

    def graph(self, g: int, h: int) -> None:
        """The two graphs are the same."""
        ours, theirs = self.state.graphs[g], self.last.graphs[h]
        if len(ours.inputs) != len(theirs.inputs) or len(ours.outputs) != len(theirs.outputs):
            raise Unshown("a graph of the last model has an input or an output more or less")
        self.tensors(ours.inputs, theirs.inputs)
        self.tensors(ours.outputs, theirs.outputs)
        self._declared(g, h)
        by_first: dict[int, int] = {}
        for m in theirs.nodes:
            for u in self.last.nodes[m].outputs:
                if u is not None:
                    by_first[u] = m
        if len(ours.nodes) != len(theirs.nodes):
            raise Unshown(f"the steps lead to {len(ours.nodes)} nodes in a graph that has {len(theirs.nodes)}")
        for n in ours.nodes:
            node = self.state.nodes[n]
            first = next((t for t in node.outputs if t is not None), None)
            found = None if first is None else by_first.get(self.numbers.get(self.called[first], -1))
            if found is None:
                raise Unshown(f"{node.op_type} that writes {_named(self.state, node)} is not in the last model")
            self._node(node, self.last.nodes[found])
        self._values(g, h)

    def _node(self, node: Node, other: Node) -> None:
        where = f"{node.op_type} that writes {_named(self.state, node)}"
        same = (node.domain, node.op_type, node.overload, node.name)
        if same != (other.domain, other.op_type, other.overload, other.name) or node.text is not other.text:
            raise Unshown(f"{where} is another operator, or has another name, in the last model")
        if node.text is not None and node.version is not None and other.version is not None:
            if not _same_defaults(node.text, node.version, other.version, node.attributes):
                raise Unshown(f"{where} has other defaults in the last model")
            if node.op_type == "Scan" and node.version != other.version:  # the rules of part 3 look at its version
                raise open_reason(f"{where} has another version in the last model, which may run otherwise")
        elif node.opset != other.opset or node.version != other.version:
            raise Unshown(f"{where} is of another operator set in the last model")
        if not same_attributes(node.attributes, other.attributes):
            raise Unshown(f"{where} has other attributes in the last model")
        self.tensors(node.inputs, other.inputs)
        self.tensors(node.outputs, other.outputs)
        bodies = (
            [self.state.graphs[b].attribute for b in node.bodies],
            [self.last.graphs[b].attribute for b in other.bodies],
        )
        if bodies[0] != bodies[1]:
            raise Unshown(f"{where} holds other bodies in the last model")
        for b, c in zip(node.bodies, other.bodies, strict=True):
            self.graph(b, c)

    def _values(self, g: int, h: int) -> None:
        """The stored values are the same; one that nobody reads may be left out."""
        ours = {t: it for t, it in self.state.values.items() if self.state.home[t] == g}
        theirs = {u: it for u, it in self.last.values.items() if self.last.home[u] == h}
        named = {self.called[t]: t for t in ours}
        for u, value in theirs.items():
            t = named.get(self.last.names[u])
            if t is None or not ours[t].same(value):
                raise Unshown(f"the stored value {quoted(self.last.names[u])} of the last model is another one")
            self.tensor(t, u)
        there = {self.last.names[u] for u in theirs}
        for t in ours:
            needed = self.state.readers.get(t) or self.state.kept(t) or t in self.state.overridable
            if needed and self.called[t] not in there:
                raise Unshown(f"the stored value {quoted(self.called[t])} is not in the last model")

    def _declared(self, g: int, h: int) -> None:
        """What is declared of tensors in the last model is declared so in the first."""
        first, last = self.state.walk.graph.reading, self.last.walk.graph.reading
        ours: list[dict[str, list[bytes]]] = [{}, {}]
        for number, side, graph in ((0, first, g), (1, last, h)):
            own = side.graphs[graph]
            named = self.called if number == 0 else self.last.names
            pairs = [*zip((*own.inputs, *own.outputs), (*own.proto.input, *own.proto.output), strict=True)]
            facts = (self.state if number == 0 else self.last).walk.graph
            pairs += list(facts.annotations(graph))
            for t, value in pairs:
                if value.HasField("type"):
                    ours[number].setdefault(named[t], []).append(type_bytes(value.type))
        for name, types in ours[1].items():
            if not set(types) <= set(ours[0].get(name, ())):
                raise Unshown(f"{quoted(name)} is declared otherwise in the last model")
        for t in (*first.graphs[g].inputs, *first.graphs[g].outputs):
            if self.called[t] in ours[0] and self.called[t] not in ours[1]:
                raise Unshown(f"{quoted(self.called[t])} is declared otherwise in the last model")


def type_bytes(proto: onnx.TypeProto) -> bytes:
    """A declared type as bytes; what it denotes in words is left out."""
    copy = onnx.TypeProto()
    copy.CopyFrom(proto)
    for it in _dimensions(copy):
        it.ClearField("denotation")
    copy.ClearField("denotation")
    return copy.SerializeToString(deterministic=True)


def _dimensions(proto: onnx.TypeProto) -> Iterator[Any]:
    match proto.WhichOneof("value"):
        case "tensor_type":
            yield from proto.tensor_type.shape.dim
        case "sparse_tensor_type":
            yield from proto.sparse_tensor_type.shape.dim


def _without_last(tensors: Sequence[int | None]) -> list[int | None]:
    listed = list(tensors)
    while listed and listed[-1] is None:
        listed.pop()
    return listed
