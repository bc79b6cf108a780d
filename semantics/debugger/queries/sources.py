"""The origin of one element: the elements read for it, at once or from the beginning, and why it is no number."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ...errors import Unsupported
from ...machine.control import CONTROLS
from ...machine.memory import UNLIMITED
from ...machine.phases import Again, Enter, Leave, Select
from ...machine.state import State, node_path, tensor_path, value_of
from ...model.elements import is_float
from ...model.graph import NodeId, TensorId
from ...model.schemas import operator_name
from ...model.values import Array, Map, Optional, Sequence, Value
from ...operators.application import Application, Draw, Stuck
from ...operators.symbolic.values import Undefined
from ..display.texts import element_text
from ..timeline.history import History, edit_text, supplied_text
from ..timeline.names import (
    Instance,
    edits_of,
    stored_region,
    value_of_instance,
    with_kept,
    with_value,
    written_at,
)
from .explaining import Explanation, Leaf, Operation, Tree, explanations, operation_text

Index = tuple[int, ...]
_BASE: Final = 1 << 40  # numbers of elements begin here, so that no count or index of a rule is taken for one
_BATCHED: Final = 8  # the version of Scan whose first input is read as numbers


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a tensor in a run of its graph; index None: the value as a whole, where it is no tensor or what
    was read of it is not known more exactly. edits: how many times a person had changed the tensor when it was read."""

    instance: Instance
    index: Index | None
    edits: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """The reads of the write of an element. at: the moment to which that led, None for what was there from the start.

    copied: the one element of `data` was moved, nothing was computed. tree: the term, where an operator's text gave it.
    whole: in place of a footprint all inputs are named, and why. edited: the timeline whose edit gave the element.
    supplied: when and from where it came, where no definition gave it; what that read is not known.
    """

    at: int | None
    node: NodeId | None
    rule: str
    data: tuple[Element, ...] = ()
    control: tuple[Element, ...] = ()
    copied: bool = False
    tree: Tree | None = None
    whole: str = ""
    edited: History | None = None
    supplied: str = ""


class Sources:
    """The sources of elements of one timeline up to a moment. What is found is kept: explanations, numbered values."""

    def __init__(self, history: History, index: int) -> None:
        self.history, self.index = history, index
        self._explained: dict[int, Callable[[int, Index], Explanation] | str] = {}
        self._moved: dict[int, _Moved | str] = {}
        self._written: dict[tuple[TensorId, str], int | None] = {}

    def element(self, instance: Instance, index: Index | None, at: int) -> Element:
        """An element as it is at a moment."""
        return Element(instance, index, len(edits_of(self.history, min(at, self.index), instance)))

    def value(self, element: Element) -> Value | None:
        """The value of the tensor of an element, as it was read."""
        edits = edits_of(self.history, self.index, element.instance)
        if element.edits < len(edits):  # a later edit is not seen where the timeline without it reads
            before = edits[element.edits]
            return None if before.parent is None else value_of_instance(before.parent, before.first, element.instance)
        return value_of_instance(self.history, self.index, element.instance)

    def edited(self, element: Element) -> History | None:
        """The timeline whose edit gave an element its value, None where none did."""
        for timeline in reversed(edits_of(self.history, self.index, element.instance)[: element.edits]):
            edit = timeline.edit
            if edit is not None and (element.index is None or edit.changed[element.index]):
                return timeline
        return None

    def written(self, instance: Instance) -> int | None:
        """The moment to which the write of a tensor led."""
        key = instance.tensor, instance.path
        if key not in self._written:
            self._written[key] = written_at(self.history, self.index, instance)
        return self._written[key]

    def of(self, element: Element) -> Source:
        """The source of an element; of a value as a whole that was edited in part, the edit and what it changed."""
        edited = self.edited(element)
        if edited is not None and edited.edit is not None:
            rest = (
                ()
                if element.index is not None or edited.edit.changed.all()
                else (replace(element, edits=element.edits - 1),)
            )
            return Source(edited.first, None, "", rest, edited=edited)
        at = self.written(element.instance)
        if at is None:
            return Source(None, None, "")
        came = self.history.at(at).came
        if came is None:
            return Source(None, None, "")
        if came.supplied:
            return Source(at, came.node, came.rule, supplied=supplied_text(at, came.supplied))
        before = self.history.at(at - 1).state
        if came.rule == "Step/fire":
            return self._fired(element, at, came.node, before)
        return self._moved_by(element, at, came.node, came.rule, before)

    # ---- Operators ----------------------------------------------------------------------------

    def application(self, at: int, n: NodeId) -> Application:
        """The application that led to a moment."""
        return application_of(self.history.at(at - 1).state, n)

    def _fired(self, element: Element, at: int, n: NodeId, before: State) -> Source:
        node = before.program.model.nodes[n]
        if element.index is None:
            return self._whole(at, n, before, "the value as a whole")
        if at not in self._explained:
            try:
                self._explained[at] = explanations(self.application(at, n))
            except (Unsupported, Undefined) as error:
                self._explained[at] = str(error)
        explain = self._explained[at]
        if isinstance(explain, str):
            return self._whole(at, n, before, explain)
        try:
            explanation = explain(node.outputs.index(element.instance.tensor), element.index)
        except (Unsupported, Undefined) as error:
            return self._whole(at, n, before, str(error))
        data = tuple(self._elements(before, node.inputs, explanation.footprint.data))
        control = tuple(self._elements(before, node.inputs, explanation.footprint.control))
        copied = isinstance(explanation.tree, Leaf) and len(data) == 1 and data[0] not in control
        return Source(at, n, "Step/fire", data, control, copied, explanation.tree)

    def _whole(self, at: int, n: NodeId, before: State, why: str) -> Source:
        inputs = before.program.reads[n]
        data = tuple(self._now(before, t, None) for t in inputs)
        return Source(at, n, "Step/fire", data, whole=why)

    # ---- Rules that move ----------------------------------------------------------------------

    def _moved_by(self, element: Element, at: int, n: NodeId, rule: str, before: State) -> Source:
        if at not in self._moved:
            self._moved[at] = _numbered(self.history, at, n, before)
        moved = self._moved[at]
        control = tuple(self._deciding(n, before))
        if isinstance(moved, str):
            return replace(self._whole(at, n, before, moved), rule=rule, control=control)
        value = moved.values.get(element.instance.tensor)
        moved_from = () if value is None else tuple(moved.elements(value, element.index))
        read_from = tuple(self.element(it.instance, it.index, before.steps) for it in moved_from)
        return Source(at, n, rule, read_from, control, len(read_from) == 1 and element.index is not None)

    def _deciding(self, n: NodeId, before: State) -> Iterator[Element]:
        """The tensors that decided that the body ran: the condition of an If, trip count and condition of a Loop."""
        model = before.program.model
        node = model.nodes[n]
        positions = {"If": (0,), "Loop": (0, 1)}.get(node.op_type, ())
        for position in positions:
            t = node.inputs[position] if position < len(node.inputs) else None
            if t is not None:
                yield self._single(before, t)
        if node.op_type == "Loop" and before.frame.holder == n and model.graphs[before.frame.graph].outputs:
            yield self._single(before, model.graphs[before.frame.graph].outputs[0])

    # ---- Elements as they are read ------------------------------------------------------------

    def _now(self, before: State, t: TensorId, index: Index | None) -> Element:
        return self.element(Instance(t, tensor_path(before, t)), index, before.steps)

    def _single(self, before: State, t: TensorId) -> Element:
        """The one element of a tensor."""
        value = value_of(before, t)
        index = (0,) * value.ndim if isinstance(value, np.ndarray) and value.size == 1 else None
        return self._now(before, t, index)

    def _elements(self, before: State, inputs: tuple[TensorId | None, ...], reads: object) -> Iterator[Element]:
        if not isinstance(reads, dict):
            return
        for position, indices in reads.items():
            t = inputs[position] if position < len(inputs) else None
            if t is not None:
                whole = self._now(before, t, None)
                for index in sorted(indices):
                    yield Element(whole.instance, index, whole.edits)


def application_of(before: State, n: NodeId) -> Application:
    """The application of a node in a state."""
    program = before.program
    node = program.model.nodes[n]
    budget = before.store.space.budget
    return Application(
        operator_name(node.domain, node.op_type),
        node.version or 0,
        tuple(None if t is None else value_of(before, t) for t in node.inputs),
        program.attributes(n),
        tuple(t is not None for t in node.outputs),
        None if budget == UNLIMITED else budget,
        Draw(program.draws, node_path(before, n)),
    )


# ---- Numbered elements ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Moved:
    """The results of a rule for numbered elements, and the numbers: the first one, and the tensor and shape."""

    values: dict[TensorId, Value]
    numbers: tuple[tuple[int, Instance, Index | None], ...]

    def elements(self, value: Value, index: Index | None) -> Iterator[Element]:
        """The elements that stand at an index of a value, or all of them."""
        arrays = list(_arrays(value))
        if index is not None and isinstance(value, np.ndarray):
            arrays = [np.asarray(value[index])]
        for array in arrays:
            if array.dtype == np.int64:
                for number in np.unique(array).tolist():
                    element = self._element(number)
                    if element is not None:
                        yield element

    def _element(self, number: int) -> Element | None:
        if number < _BASE:
            return None
        first, instance, shape = max((it for it in self.numbers if it[0] <= number), key=lambda it: it[0])
        if shape is None:
            return Element(instance, None)
        return Element(instance, tuple(int(i) for i in np.unravel_index(number - first, shape)))


def _numbered(history: History, at: int, n: NodeId, before: State) -> _Moved | str:
    """The rule that led to a moment carried out on numbered elements; why that is not possible otherwise."""
    select = history.phases(at - 1)[0]
    if not isinstance(select, Select):
        return "the transition was refused"
    model = before.program.model
    node = model.nodes[n]
    tagging = _Tagging()
    state = before
    skip = 1 if node.op_type == "Scan" and node.version == _BATCHED else 0
    wanted = [t for t in node.inputs[skip:] if t is not None]
    if isinstance(select.change, Again | Leave):
        wanted += model.graphs[before.frame.graph].outputs
    for t in dict.fromkeys(wanted):
        value, instance = value_of(before, t), Instance(t, tensor_path(before, t))
        if value is not None:
            state = with_value(state, instance, tagging.tagged(value, instance))
    if isinstance(select.change, Leave):
        state = with_kept(state, before, lambda instance, value: tagging.tagged(value, instance))
    made = CONTROLS[node.op_type].computes(state, select)
    if isinstance(made, Stuck):
        return made.message
    if isinstance(select.change, Enter) and node.op_type == "If":
        return _Moved({}, ())
    return _Moved(dict(zip(made.tensors, made.values, strict=True)), tuple(tagging.numbers))


class _Tagging:
    """Gives elements numbers."""

    def __init__(self) -> None:
        self.numbers: list[tuple[int, Instance, Index | None]] = []
        self._next = _BASE

    def tagged(self, value: Value, instance: Instance, *, inside: bool = False) -> Value:
        """The value with a number in place of each element; of what is no tensor all elements stand for the whole."""
        if isinstance(value, np.ndarray):
            self.numbers.append((self._next, instance, None if inside else value.shape))
            tags = np.arange(self._next, self._next + value.size, dtype=np.int64).reshape(value.shape)
            self._next += max(value.size, 1)
            tags.flags.writeable = False
            return tags
        if isinstance(value, Sequence):
            items = tuple(self.tagged(it, instance, inside=True) for it in value.items)
            return Sequence(
                replace(value.inner, element="int64") if value.inner.kind == "tensor" else value.inner, items
            )
        return value


def _arrays(value: Value) -> Iterator[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Sequence):
        for item in value.items:
            yield from _arrays(item)
    elif isinstance(value, Optional) and value.item is not None:
        yield from _arrays(value.item)
    elif isinstance(value, Map):
        for _, item in value.items:
            yield from _arrays(item)


# ---- Transitive origins ---------------------------------------------------------------------------

LIMIT: Final = 100_000
"""So many elements are followed for one question."""
_WHOLES: Final = 20_000
_COPIES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of one tensor. kind: input, stored, constant, computed, edited, supplied, or sizes: made of the sizes of
    inputs, of no element. whole: all of it, as far as is known. edited: the timeline whose edit gave them. supplied:
    when and from where they came, for those that no definition gave.
    """

    instance: Instance
    kind: str
    elements: tuple[Index, ...]
    shape: tuple[int, ...] | None
    whole: bool = False
    edited: History | None = None
    supplied: str = ""

    @property
    def box(self) -> tuple[tuple[int, int], ...]:
        """For each axis the least and the greatest position."""
        return tuple((min(axis), max(axis)) for axis in zip(*self.elements, strict=True))


@dataclass(frozen=True, slots=True)
class Origin:
    """data: by tensor, what values went into the element; control: what decided. steps: the moments on the way.

    followed, left: how many elements were looked at, and how many more are known. cut: why the search ended before all
    were, "" where it did not; the elements that were not followed are among the parts. beyond: where those come from at
    most, tensor by tensor; None where that was too long too. inexact: for which nodes all inputs were taken, and why.
    """

    data: tuple[Part, ...]
    control: tuple[Part, ...]
    steps: tuple[int, ...]
    followed: int = 0
    left: int = 0
    cut: str = ""
    beyond: tuple[Part, ...] | None = ()
    inexact: tuple[str, ...] = ()


Interrupted = Callable[[], bool]


def origin(
    sources: Sources,
    start: Element,
    depth: int | None = None,
    interrupted: Interrupted = lambda: False,
    hurried: Interrupted = lambda: False,
) -> Origin:
    """The origin of an element, back to what was there from the start, or through so many computing nodes.

    interrupted: ends the search element by element; hurried: then the one tensor by tensor too.
    What decided is followed too: it decides about all that comes after it.
    """
    ends: dict[bool, set[Element]] = {True: set(), False: set()}
    inexact: dict[str, None] = {}
    steps: set[int] = set()
    seen: dict[tuple[Element, bool], int] = {}
    work = deque([(start, True, 0)])
    cut = ""
    left: set[Element] = set()
    while work:
        element, is_data, level = work.popleft()
        known = seen.get((element, is_data))
        if known is not None and known <= level:
            continue
        if len(seen) >= LIMIT or interrupted():
            cut = "elements" if len(seen) >= LIMIT else "time"
            for other, was_data, _ in ((element, is_data, level), *work):
                ends[was_data].add(other)
                left.add(other)
            break
        seen[element, is_data] = level
        source = sources.of(element)
        alone = not source.data and not source.control
        if source.edited is not None:
            ends[is_data].add(element)
        elif source.at is None or alone or (depth is not None and level >= depth and not source.copied):
            ends[is_data].add(element)
            continue
        else:
            steps.add(source.at)
        if source.whole and source.at is not None:
            came = sources.history.at(source.at).came
            inexact[f"{came.path if came is not None else ''}: {source.whole}"] = None
        after = level if source.copied else level + 1
        work.extend((it, is_data, after) for it in source.data)
        work.extend((it, False, after) for it in source.control)
    data, control = (_parts(sources, ends[it]) for it in (True, False))
    beyond = _beyond(sources, {it.instance for it in left}, hurried)
    return Origin(data, control, tuple(sorted(steps)), len(seen), len(left), cut, beyond, tuple(inexact))


def _beyond(sources: Sources, left: Iterable[Instance], hurried: Interrupted) -> tuple[Part, ...] | None:
    """The tensors that were there from the start from which others come at most: followed as wholes."""
    seen: set[Element] = set()
    ends: set[Element] = set()
    work = [sources.element(it, None, sources.index) for it in left]
    while work:
        element = work.pop()
        if element in seen:
            continue
        if len(seen) >= _WHOLES or hurried():
            return None
        seen.add(element)
        source = sources.of(element)
        reads = (*source.data, *source.control)
        if source.edited is not None or not reads:
            ends.add(element)
        work += [replace(it, index=None) for it in reads]
    return _parts(sources, ends)


def _parts(sources: Sources, elements: Iterable[Element]) -> tuple[Part, ...]:
    by_tensor: dict[tuple[Instance, History | None], set[Element]] = {}
    first, tensors = sources.history.at(0).state, sources.history.model.tensors
    for element in elements:
        instance, edited = element.instance, sources.edited(element)
        if edited is None and stored_region(first, instance.tensor) is not None:  # the same in all runs of its graph
            instance = Instance(instance.tensor, tensors[instance.tensor].path)
        by_tensor.setdefault((instance, edited), set()).add(element)
    order = sorted(
        by_tensor, key=lambda it: (it[0].path, 0 if it[1] is None or it[1].edit is None else it[1].edit.timeline)
    )
    return tuple(_part(sources, instance, edited, by_tensor[instance, edited]) for instance, edited in order)


def _part(sources: Sources, instance: Instance, edited: History | None, elements: set[Element]) -> Part:
    value = sources.value(next(iter(elements)))
    shape = getattr(value, "shape", None)
    indices = tuple(sorted({it.index for it in elements if it.index is not None}))
    whole = any(it.index is None for it in elements) or (shape is not None and len(indices) == _size(value))
    kind = _kind(sources, instance, next(iter(elements))) if edited is None else "edited"
    supplied = sources.of(next(iter(elements))).supplied
    return Part(instance, kind, indices, shape, whole, edited, supplied)


def _kind(sources: Sources, instance: Instance, element: Element) -> str:
    at = sources.written(instance)
    came = None if at is None else sources.history.at(at).came
    if came is not None:
        if came.supplied:
            return "supplied"
        if not sources.history.model.nodes[came.node].inputs:
            return "constant"
        source = sources.of(element)
        return "computed" if source.data or source.control else "sizes"
    model = sources.history.model
    graph = model.graphs[model.tensors[instance.tensor].graph]
    return "input" if instance.tensor in graph.inputs and graph.holder is None else "stored"


def _size(value: Value | None) -> int:
    return int(getattr(value, "size", -1))


def through_copies(sources: Sources, element: Element) -> tuple[Element, Source]:
    """The element that one is a copy of, and the source of that: copies on the way are passed over."""
    for _ in range(_COPIES):
        source = sources.of(element)
        if not source.copied:
            return element, source
        element = source.data[0]
    return element, sources.of(element)


# ---- Elements that are no numbers -----------------------------------------------------------------

_LONGEST: Final = 100_000
_LOOKED: Final = 5000


@dataclass(frozen=True, slots=True)
class Link:
    """One element on the way. kind: Generated, Propagated, Copied, Killed, Given, Edited, Supplied; Cut: the search
    ended there.

    at: the moment to which its write led. why: the operation, with its operands.
    """

    kind: str
    element: Element
    value: str
    at: int | None
    node: str
    why: str = ""


def nonfinite_kind(value: Array | None) -> str:
    """nan, inf, or "" for other elements."""
    if value is None or not (is_float(value.dtype) or value.dtype.kind == "c"):
        return ""
    wide = value.astype(np.complex128)
    return "nan" if bool(np.isnan(wide)) else "inf" if bool(np.isinf(wide)) else ""


def chain(sources: Sources, start: Element, interrupted: Callable[[], bool] = lambda: False) -> tuple[Link, ...]:
    """From an element that is nan or infinite back to where that was generated, or to what was given.

    For any other element: what is not finite among all that it was computed of, and the node that killed it.
    """
    what = nonfinite_kind(_scalar(sources, start))
    return tuple(_back(sources, start, what) if what else _killed(sources, start, interrupted))


def _back(sources: Sources, element: Element, what: str) -> Iterator[Link]:
    for _ in range(_LONGEST):
        source = sources.of(element)
        value = _scalar(sources, element)
        shown = "" if value is None else element_text(value)
        node = _node(sources, source)
        if source.at is None:
            yield Link("Given", element, shown, None, "", "it was there from the start")
            return
        if source.edited is not None:
            yield Link("Edited", element, shown, source.at, "", edit_text(source.edited))
            return
        if source.supplied:
            yield Link("Supplied", element, shown, source.at, node, source.supplied)
            return
        before = [it for it in source.data if nonfinite_kind(_scalar(sources, it)) == what]
        if not before:
            yield Link("Generated", element, shown, source.at, node, _generated(source, what) + _asked(sources, source))
            return
        rest = f", and {len(before) - 1} more" if len(before) > 1 else ""
        kind = "Copied" if source.copied else "Propagated"
        yield Link(kind, element, shown, source.at, node, f"from {text_of(before[0])}{rest}")
        element = before[0]


def _asked(sources: Sources, source: Source) -> str:
    """The element to ask about next, where one of those read is not finite either."""
    odd = next((it for it in source.data if nonfinite_kind(_scalar(sources, it))), None)
    return "" if odd is None else f"; then why-inf {said_of(odd)}"


def _generated(source: Source, what: str) -> str:
    """The first operation that gives a NaN, or an infinity, of operands that are none."""
    if source.whole or source.tree is None:
        return source.whole
    tree = _first(source.tree, what)
    if not isinstance(tree, Operation):
        return f"an attribute of the node is {what}"
    operands = [element_text(it.value) for it in tree.arguments]
    return f"{operation_text(tree.name, operands)} = {element_text(tree.value)}"


def _first(tree: Tree, what: str) -> Tree | None:
    """The deepest operation that gives what its operands are not, the one that is carried out first."""
    term: Tree | None = None
    stack = [tree]
    while stack:
        item = stack.pop()
        if nonfinite_kind(item.value) != what or not isinstance(item, Operation):
            continue
        inner = [it for it in item.arguments if nonfinite_kind(it.value) == what]
        if not inner:
            term = item
        else:
            stack.append(inner[0])
    return term


def _killed(sources: Sources, start: Element, interrupted: Callable[[], bool]) -> Iterator[Link]:
    seen: set[Element] = set()
    work = deque((start,))
    while work and len(seen) < _LOOKED and not interrupted():
        element = work.popleft()
        if element in seen:
            continue
        seen.add(element)
        source = sources.of(element)
        for read in (*source.data, *source.control):
            what = nonfinite_kind(_scalar(sources, read))
            if not what:
                work.append(read)
                continue
            value, own = _scalar(sources, read), _scalar(sources, element)
            how = "it decided only" if read not in source.data else "its value went into the result"
            why = f"{text_of(read)} = {'' if value is None else element_text(value)} was read: {how}"
            yield Link(
                "Killed", element, "" if own is None else element_text(own), source.at, _node(sources, source), why
            )
    if work:
        yield Link(
            "Cut", work[0], "", None, "", f"cut off here after {len(seen)} elements: what lies behind is not known"
        )


def _scalar(sources: Sources, element: Element) -> Array | None:
    value = sources.value(element)
    if element.index is None or not isinstance(value, np.ndarray):
        return None
    return np.asarray(value[element.index], value.dtype)


def _node(sources: Sources, source: Source) -> str:
    came = None if source.at is None else sources.history.at(source.at).came
    return "" if came is None else came.path


def text_of(element: Element) -> str:
    """An element as people write it."""
    return element.instance.path + ("" if element.index is None else str(list(element.index)))


def said_of(element: Element) -> str:
    """An element as a command takes it."""
    return f"`{element.instance.path}`" + ("" if element.index is None else str(list(element.index)))
