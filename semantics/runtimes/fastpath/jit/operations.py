"""The form of the operations that `routines` compute: integers, one after the other, in one array.

An operation is its code, the number of parts in which it can be done in any order, and its parameters. An address in it
is two integers: the number of a base, which is known when a run begins, and the distance from there in bytes. `FIELDS`
gives the parameters of an operation in order; those with a `*` are addresses. At the end stand the steps of a chain:
a function, the kind of its operand, its address.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final

CHAIN, PAD, COPY, CONVOLUTION, DOTS, POOL, MEAN, LRN, SOFTMAX, LAYER, APPLY, CELL = range(12)
WEAVE, LINES, RANGE, SCALE, PICK = range(12, 17)

FIELDS: Final[Mapping[int, str]] = {
    CHAIN: "source* goal* takes gives rows channels places rows_each count",
    PAD: "source* goal* planes height width top left split_high split_wide high wide planes_each",
    COPY: "source* goal* outer a b c d from_outer from_a from_b from_c from_d to_outer to_a to_b to_c to_d size",
    CONVOLUTION: "source* goal* kernels* offsets* images groups each terms places image_bytes group_bytes wide width "
    "positions blocks block bands band depth family groups_each by_rows order form added* "
    "totals* zero* zeros factor* shift* count",
    DOTS: "source* kernels* goal* groups source_bytes kernel_bytes terms rows rows_each count",
    POOL: "source* goal* counts* offsets* planes height width top left split_wide high wide down pace rows columns "
    "taps mean planes_each",
    MEAN: "source* goal* planes places divisor* planes_each",
    LRN: "source* goal* images channels places size before factor* addend* exponent* places_each",
    SOFTMAX: "source* goal* rows length rows_each",
    LAYER: "source* goal* count* epsilon* rows length rows_each added",
    APPLY: "source* goal* function tables* size size_each",
    CELL: "source* goal* before* cell* size size_each",
    WEAVE: "source* goal* zero* kind planes quads channels height width top left split_high split_wide phases_high "
    "phases_wide high wide planes_each",
    LINES: "source* goal* rows length pitch mask rows_each",
    RANGE: "source* goal* size size_each",
    SCALE: "source* goal* cell* beside* parts",
    PICK: "source* goal* indices* wide begins* repeat along* tuples width size rows rows_each",
}
"""The parameters of each operation, by its code."""
REFUSING: Final = frozenset({PICK})
"""Operations that are not defined on all data of their shapes: they run where nothing reads what they write, too."""
SLACK: Final = 512
"""Bytes behind data that are read by whole vectors: what is too much is not used."""
ENDED: Final = 64
"""Zeros that stand behind the last plane of padded data, or as many as at the left of a row where these are fewer."""
BLOCK: Final = 1024
"""Elements of a row to which all steps of a chain are applied before the next ones."""
TOGETHER: Final = 32
"""Steps of a chain that are applied together; scratch memory begins with that many floats for their operands."""
UNITS: Final = 256
"""Units of a layer that are computed at a time."""
ADD, SUBTRACT, MULTIPLY, DIVIDE, SUBTRACT_FROM, DIVIDE_BY, AT_LEAST, AT_MOST, GREATEST, LEAST, NEAREST = range(11)
"""The functions of steps: of the data and an operand. NEAREST is the nearest integer, that which is even of two."""
SCALAR, CHANNEL, TENSOR, ROW = range(4)
"""The kinds of operands of a step: one element, one for each channel, a tensor like the data, one row of it."""
FLOAT, INT32, UINT8, INT8 = range(4)
"""The types of elements. In products of bytes the sums of int32 are given as one of these."""
FLOATS, SIGNED_ROWS, SIGNED_COLUMNS = range(3)
"""The orders of products: of floats; of bytes, four at a time, those of the rows or of the columns being signed."""
ERF, SIGMOID, TANH, EXP = range(4)
"""The functions of one operand."""
IDLE, POSTED, TAKEN, DONE = range(4)
"""What is said at the desk of a thread: of a list that is posted the caller learns whether it was taken, and when it is
done."""


def positions(code: int) -> Any:
    """A named tuple: for each parameter the distance of its first integer from that of the code, and in `steps` where
    the steps begin."""
    names = FIELDS[code].split()
    sizes = (2 if name.endswith("*") else 1 for name in names)
    form: Any = namedtuple  # whose fields Numba reads; they are known when this runs
    made = form("Positions", [*(name.rstrip("*") for name in names), "steps"])
    return made(*accumulate(sizes, initial=2))
