"""A list of operations while it grows, and the memory of what they write.

A tensor lies in memory of its own, or in that of another one: a reshaped tensor in the one that it shows, and what is
concatenated along the first axis that counts in the result, where it is written at once. What the list computes and
nobody else reads lies in an arena, where what is not needed at the same time shares bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ....errors import InternalError
from ....machine.allocation.plan import AllocationPlan, Lifetime
from ....machine.allocation.plan import arena as placed
from ....model.graph import TensorId
from ..functions import DType
from ..kernel import Array
from . import operations

Shape = tuple[int, ...]
ABSOLUTE, ARENA, GIVEN = range(3)
"""The bases: none, the arena, then the inputs and outputs of the list."""
BYTES: Final = 4
"""Of a float."""


@dataclass(frozen=True, slots=True)
class At:
    """A place in a tensor, or in a known value. offset: in bytes."""

    tensor: TensorId | Array
    offset: int = 0


Parameter = int | At
Step = tuple[int, int, At]
"""A function, the kind of its operand, where that lies."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, before it has addresses."""

    code: int
    parts: int
    parameters: Mapping[str, Parameter]
    steps: tuple[Step, ...] = ()

    def integer(self, name: str) -> int:
        """A parameter that is a number."""
        value = self.parameters[name]
        return value if isinstance(value, int) else -1

    def words(self) -> Iterator[Parameter]:
        """The parameters and the steps, in order."""
        yield from (self.parameters[it.rstrip("*")] for it in operations.FIELDS[self.code].split())
        for step in self.steps:
            yield from step

    @property
    def reads(self) -> frozenset[TensorId]:
        """The tensors that it names, those that it writes too."""
        return frozenset(it.tensor for it in self.words() if isinstance(it, At) and isinstance(it.tensor, int))

    @property
    def writes(self) -> frozenset[TensorId]:
        """The tensors that it writes."""
        goals = (self.parameters.get(it) for it in ("goal", "cell", "beside"))
        return frozenset(it.tensor for it in goals if isinstance(it, At) and isinstance(it.tensor, int))


@dataclass
class Listing:
    """The operations so far. shapes, types: of all tensors. temporary: the bytes of memory that is no tensor, by its
    number, which is negative. inside: for a tensor that lies in another one which, and at which byte. turned: for a
    tensor of matrices those that it shows transposed; an operation that makes it is left out where nothing reads it.
    passed: the tensors that are read beyond their ends."""

    shapes: Mapping[TensorId, Shape]
    types: Mapping[TensorId, DType]
    constants: Mapping[TensorId, Array]
    inputs: Sequence[TensorId]
    outputs: Sequence[TensorId]
    operations: list[Operation] = field(default_factory=list)
    temporary: dict[int, int] = field(default_factory=dict)
    inside: dict[TensorId, tuple[TensorId, int]] = field(default_factory=dict)
    turned: dict[TensorId, TensorId] = field(default_factory=dict)
    passed: set[TensorId] = field(default_factory=set)
    scratch: int = 0

    def add(self, code: int, parts: int, steps: Sequence[Step] = (), /, **parameters: Parameter) -> None:
        """Adds an operation; its `goal` is what it writes, its `cell`, and what is `beside`."""
        names = [it.rstrip("*") for it in operations.FIELDS[code].split()]
        if sorted(names) != sorted(parameters):
            raise InternalError(f"operation {code} has the parameters {names}, not {list(parameters)}")
        self.operations.append(Operation(code, parts, parameters, tuple(steps)))

    def temporary_memory(self, size: int) -> int:
        """The number of new memory of so many bytes."""
        number = -1 - len(self.temporary)
        self.temporary[number] = size
        return number

    def at(self, tensor: TensorId) -> At:
        """Where a tensor begins: in the known value, where it is known."""
        known = self.constants.get(tensor)
        return At(tensor if known is None else known)

    def can_be_passed(self, tensor: TensorId) -> bool:
        """True where whole vectors may be read beyond the end of a tensor: it lies in the arena, and stays there."""
        root, _ = self.root(tensor)
        if root in self.constants or root in self.inputs or root in self.outputs:
            return False
        self.passed.add(root)
        return True

    def root(self, tensor: TensorId) -> tuple[TensorId, int]:
        """The tensor in whose memory a tensor lies, and at which byte."""
        offset = 0
        while tensor in self.inside:
            tensor, more = self.inside[tensor]
            offset += more
        return tensor, offset

    def size(self, tensor: TensorId) -> int:
        """The bytes of a tensor or of other memory."""
        return self.temporary[tensor] if tensor < 0 else self.types[tensor].itemsize * math.prod(self.shapes[tensor])


@dataclass(frozen=True, slots=True)
class Listed:
    """Operations that can be run. arena: its bytes; scratch: those that each thread needs. values: what the addresses
    without a base lie in. outputs: the shapes and types of the results. wide: some operation has several parts."""

    words: Array
    starts: Array
    arena: int
    scratch: int
    values: tuple[Array, ...]
    outputs: tuple[tuple[Shape, DType], ...]
    wide: bool


def finished(listing: Listing) -> Listed:
    """The operations with their addresses; those are left out whose results nothing reads, if they refuse no data."""
    listing.operations = _merged(listing, _needed(listing))
    first: dict[TensorId, int] = {}
    last: dict[TensorId, int] = {}
    for number, operation in enumerate(listing.operations):
        for tensor in operation.reads:
            root, _ = listing.root(tensor)
            first.setdefault(root, number)
            last[root] = number
    bases = {t: GIVEN + k for k, t in enumerate((*listing.inputs, *listing.outputs))}
    alive = [Lifetime(t, listing.size(t), first[t], last[t]) for t in first if t not in bases]
    plan = placed(alive)
    if not isinstance(plan, AllocationPlan):
        raise InternalError("an arena without a limit was refused")
    offsets = {it.tensor: it.offset for it in plan.allocations}
    words: list[int] = []
    starts: list[int] = []
    values: list[Array] = []
    for operation in listing.operations:
        starts.append(len(words))
        words += (operation.code, operation.parts)
        for parameter in operation.words():
            if isinstance(parameter, int):
                words.append(parameter)
            elif isinstance(parameter.tensor, int):
                root, offset = listing.root(parameter.tensor)
                base = bases.get(root, ARENA)
                words += (base, offsets.get(root, 0) + offset + parameter.offset)
            else:
                values.append(parameter.tensor)
                words += (ABSOLUTE, address(parameter.tensor) + parameter.offset)
    wide = any(it.parts > 1 for it in listing.operations)
    return Listed(
        np.array(words, np.int64),
        np.array(starts, np.int64),
        plan.total + operations.SLACK,
        -(-listing.scratch // 64) * 64 + BYTES * operations.TOGETHER,
        tuple(values),
        tuple((listing.shapes[t], listing.types[t]) for t in listing.outputs),
        wide,
    )


def _needed(listing: Listing) -> list[Operation]:
    needed = set(listing.outputs)
    kept: list[Operation] = []
    for operation in reversed(listing.operations):
        writes = {listing.root(t)[0] for t in operation.writes}
        if operation.code in operations.REFUSING or not needed.isdisjoint(writes):
            needed.update(listing.root(t)[0] for t in operation.reads)
            kept.append(operation)
    return kept[::-1]


def _merged(listing: Listing, needed: Sequence[Operation]) -> list[Operation]:
    """The operations, where a chain that alone reads what another one, or a product, writes is part of that."""
    readers = Counter(t for it in needed for t in it.reads)  # what writes a tensor names it too
    alone_ = {t for t, count in readers.items() if count == 2} - set(listing.outputs) - set(listing.inside)
    alone_ -= {root for root, _ in listing.inside.values()}
    made: dict[TensorId, int] = {}
    kept: list[Operation | None] = []
    for operation in needed:
        source = operation.parameters.get("source")
        if operation.code == operations.CHAIN and isinstance(source, At) and isinstance(source.tensor, int):
            before = made.get(source.tensor)
            again = source.tensor in [it.tensor for _, _, it in operation.steps if isinstance(it.tensor, int)]
            first = None if before is None or again or source.tensor not in alone_ else kept[before]
            both = None if first is None else _both(first, operation)
            if both is not None and before is not None:
                kept[before], operation = None, both
        made.update(dict.fromkeys(operation.writes, len(kept)))
        kept.append(operation)
    return [it for it in kept if it is not None]


def _both(first: Operation, chain: Operation) -> Operation | None:
    """One operation for two, where there is one. The first one writes what the chain reads."""
    steps = first.steps + chain.steps
    kinds = {kind for _, kind, _ in chain.steps}
    ends = {"goal": chain.parameters["goal"], "count": len(steps)}
    result = {operations.CHAIN: "gives", operations.CONVOLUTION: "form"}.get(first.code)
    given = operations.FLOAT if result is None else first.integer(result)
    if given != chain.integer("takes"):
        return None
    if first.code == operations.CHAIN:
        fits = {operations.SCALAR, operations.TENSOR}.issuperset(kind for _, kind, _ in first.steps)
        if not fits or given != operations.FLOAT:  # bytes between them have limits, and none of them is a NaN
            return None
        whole = {**chain.parameters, **ends, "source": first.parameters["source"], "takes": first.parameters["takes"]}
        return Operation(chain.code, chain.parts, whole, steps)
    if chain.integer("gives") != operations.FLOAT or given not in (operations.FLOAT, operations.INT32):
        return None
    if first.code == operations.DOTS:
        fits = operations.ROW not in kinds or chain.integer("places") == first.integer("rows")
        fits = fits and operations.CHANNEL not in kinds
        return Operation(first.code, first.parts, {**first.parameters, **ends}, steps) if fits else None
    if first.code != operations.CONVOLUTION:
        return None
    if first.integer("by_rows"):
        fits = operations.ROW not in kinds or chain.integer("places") == first.integer("positions")
        refused = operations.CHANNEL
    else:
        channels = first.integer("groups") * first.integer("each")
        same = (chain.integer("channels"), chain.integer("places")) == (channels, first.integer("positions"))
        fits, refused = operations.CHANNEL not in kinds or same, operations.ROW
    if not fits or refused in kinds:
        return None
    return Operation(first.code, first.parts, {**first.parameters, **ends, "form": operations.FLOAT}, steps)


def address(array: Array) -> int:
    """Where an array begins in memory."""
    start: int = array.__array_interface__["data"][0]
    return start
