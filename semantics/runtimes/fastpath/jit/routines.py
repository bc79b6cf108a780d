"""The operations of `operations`, computed by functions that Numba compiles; they hold no lock of Python.

NumPy's rules for floats hold: no assumption is made about NaN, infinities or the sign of zeros, and nothing is fused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numba

from . import operations
from .processor import LANES, ROWS
from .vectors import (
    address_of,
    block_product,
    changed,
    column_product,
    combined,
    copied,
    counted,
    dot,
    exchanged,
    fetched,
    floats,
    integers,
    narrowed,
    octets,
    paused,
    power_of_two,
    row_applied,
    row_copied,
    row_scaled,
    row_with_row,
    row_with_scalar,
    rows_scaled,
    seen,
    stored,
    thinned,
    total,
    widened,
    words_at,
    woven,
    yielded,
)  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
# Neither wrappers nor counted memory: what is called by compiled code alone needs none.
OPTIONS: Final = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
native: Final[Callable[[F], F]] = numba.njit(nogil=True, error_model="numpy", **OPTIONS)
"""Compiles a function when it is first called by one that is compiled."""

CHAIN, PAD, COPY, CONVOLUTION = operations.CHAIN, operations.PAD, operations.COPY, operations.CONVOLUTION
DOTS, POOL, MEAN, LRN = operations.DOTS, operations.POOL, operations.MEAN, operations.LRN
SOFTMAX: Final = operations.SOFTMAX
LAYER, APPLY, CELL = operations.LAYER, operations.APPLY, operations.CELL
WEAVE, LINES, RANGE, SCALE = operations.WEAVE, operations.LINES, operations.RANGE, operations.SCALE
PICK: Final = operations.PICK
ADD, SUBTRACT, MULTIPLY, DIVIDE = operations.ADD, operations.SUBTRACT, operations.MULTIPLY, operations.DIVIDE
GREATEST, LEAST = operations.GREATEST, operations.LEAST
FLOAT, INT32, UINT8, INT8 = operations.FLOAT, operations.INT32, operations.UINT8, operations.INT8
SIGNED_ROWS, SIGNED_COLUMNS = operations.SIGNED_ROWS, operations.SIGNED_COLUMNS
SLACK: Final = operations.SLACK
CHANNEL, TENSOR, ROW = operations.CHANNEL, operations.TENSOR, operations.ROW
SIGMOID, TANH = operations.SIGMOID, operations.TANH
_CHAIN: Final[Any] = operations.positions(CHAIN)
_PAD: Final[Any] = operations.positions(PAD)
_COPY: Final[Any] = operations.positions(COPY)
_CONVOLUTION: Final[Any] = operations.positions(CONVOLUTION)
_DOTS: Final[Any] = operations.positions(DOTS)
_POOL: Final[Any] = operations.positions(POOL)
_MEAN: Final[Any] = operations.positions(MEAN)
_LRN: Final[Any] = operations.positions(LRN)
_SOFTMAX: Final[Any] = operations.positions(SOFTMAX)
_LAYER: Final[Any] = operations.positions(LAYER)
_APPLY: Final[Any] = operations.positions(APPLY)
_CELL: Final[Any] = operations.positions(CELL)
_WEAVE: Final[Any] = operations.positions(WEAVE)
_LINES: Final[Any] = operations.positions(LINES)
_RANGE: Final[Any] = operations.positions(RANGE)
_SCALE: Final[Any] = operations.positions(SCALE)
_PICK: Final[Any] = operations.positions(PICK)

_one8, _two8, _three8 = (block_product(ROWS, k) for k in (1, 2, 3))
_one7, _two7, _three7 = (block_product(ROWS - 1, k) for k in (1, 2, 3))
_one6, _two6, _three6 = (block_product(ROWS - 2, k) for k in (1, 2, 3))
_TAIL: Final = 4
"""Columns that are too few for a vector, and blocks of rows that are multiplied with them together."""
_tail1, _tail2, _tail3, _tail4 = (column_product(_TAIL, k) for k in (1, 2, 3, 4))
_single, _fours = block_product(1, 1), block_product(1, 4)
_one_r, _two_r, _three_r = (block_product(ROWS, k, SIGNED_ROWS) for k in (1, 2, 3))
_single_r, _fours_r = block_product(1, 1, SIGNED_ROWS), block_product(1, 4, SIGNED_ROWS)
_one_c, _two_c, _three_c = (block_product(ROWS, k, SIGNED_COLUMNS) for k in (1, 2, 3))
_single_c, _fours_c = block_product(1, 1, SIGNED_COLUMNS), block_product(1, 4, SIGNED_COLUMNS)
_TOGETHER: Final = operations.TOGETHER
_BLOCK: Final = operations.BLOCK
_SOON: Final = 512
"""How many floats before they are written their memory is fetched."""
_ENDED: Final = operations.ENDED
_UNITS: Final = operations.UNITS
_LANES: Final = 64
"""Elements of a row that are compared side by side."""
_WIDE: Final = operations.BLOCK // 4
_NEAREST: Final = operations.NEAREST
_PATIENCE: Final = 2000
"""Looks at a counter before other threads are let run."""


@native
def _address(words: Any, bases: Any, at: int) -> Any:
    return bases[words[at]] + words[at + 1]


@native
def _steps(
    words: Any, bases: Any, at: int, count: int, channel: int, place: int, source: int, goal: int, n: int, memory: int
) -> None:  # fmt: skip
    """Applies steps to a row of n floats at `source`, of which the first is element `place` of the data.

    Steps whose operand is one number are applied together. memory: for these numbers. channel: of the row, or where the
    part of a row begins when operands are rows.
    """
    if count == 0 and source != goal:
        copied(source, goal, 4 * n)
    operands = floats(memory)
    step = 0
    while step < count:
        first = at + 4 * step
        if words[first + 1] >= TENSOR:
            at_operand = channel if words[first + 1] == ROW else place
            row_with_row(words[first], source, _address(words, bases, first + 2) + 4 * at_operand, goal, n)
            step += 1
        else:
            some = 0
            while step + some < count and some < _TOGETHER and words[first + 4 * some + 1] < TENSOR:
                operand = floats(_address(words, bases, first + 4 * some + 2))
                operands[some] = operand[channel if words[first + 4 * some + 1] == CHANNEL else 0]
                some += 1
            changed(address_of(words) + 8 * first, 32, memory, some, source, goal, n)
            step += some
        source = goal


@native
def _size(form: int) -> int:
    """The bytes of an element."""
    return 1 if form in (UINT8, INT8) else 4


@native
def _chain(words: Any, bases: Any, w: int, part: int, memory: int) -> None:
    source, goal = _address(words, bases, w + _CHAIN.source), _address(words, bases, w + _CHAIN.goal)
    channels, places, count = words[w + _CHAIN.channels], words[w + _CHAIN.places], words[w + _CHAIN.count]
    takes, gives = words[w + _CHAIN.takes], words[w + _CHAIN.gives]
    line = memory + 4 * _TOGETHER
    first = part * words[w + _CHAIN.rows_each]
    for row in range(first, min(first + words[w + _CHAIN.rows_each], words[w + _CHAIN.rows])):
        for start in range(0, places, _BLOCK):
            at = row * places + start
            n = min(_BLOCK, places - start)
            channel = row % channels if channels else start
            data, out = source + _size(takes) * at, goal + _size(gives) * at
            result = out if gives == FLOAT else line
            if takes != FLOAT:
                widened(takes, data, line, n)
                data = line
            _steps(words, bases, w + _CHAIN.steps, count, channel, at, data, result, n, memory)
            if gives != FLOAT:
                narrowed(gives, line, out, n)


# ---- Copies -----------------------------------------------------------------------------------


@native
def _plane(
    source: int, goal: int, height: int, width: int, top: int, left: int, s: int, t: int, high: int, wide: int,
    beyond: float,
) -> None:  # fmt: skip
    """A plane between elements `beyond`, split by position modulo s and t into planes of `high` rows."""
    elements, goals = floats(source), floats(goal)
    for a in range(s):
        for b in range(t):
            low = max(0, -((b - left) // t))  # the first j with j * t + b - left >= 0
            past = max(low, min(wide, (width - 1 - b + left) // t + 1))
            for i in range(high):
                y = i * s + a - top
                at = ((a * t + b) * high + i) * wide
                if y < 0 or y >= height:
                    for j in range(wide):
                        goals[at + j] = beyond
                    continue
                for j in range(low):
                    goals[at + j] = beyond
                begin = y * width + low * t + b - left
                if t == 1:
                    row_copied(source + 4 * begin, goal + 4 * (at + low), past - low)
                elif t == 2:
                    thinned(source + 4 * begin, goal + 4 * (at + low), past - low)
                else:
                    for j in range(past - low):
                        goals[at + low + j] = elements[begin + j * t]
                for j in range(past, wide):
                    goals[at + j] = beyond


@native
def _pad(words: Any, bases: Any, w: int, part: int) -> None:
    """Planes between zeros, split by position modulo the strides."""
    height, width = words[w + _PAD.height], words[w + _PAD.width]
    s, t = words[w + _PAD.split_high], words[w + _PAD.split_wide]
    high, wide = words[w + _PAD.high], words[w + _PAD.wide]
    source, goal = _address(words, bases, w + _PAD.source), _address(words, bases, w + _PAD.goal)
    first = part * words[w + _PAD.planes_each]
    for plane in range(first, min(first + words[w + _PAD.planes_each], words[w + _PAD.planes])):
        _plane(
            source + 4 * plane * height * width, goal + 4 * plane * s * t * high * wide, height, width,
            words[w + _PAD.top], words[w + _PAD.left], s, t, high, wide, 0.0,
        )  # fmt: skip
        if plane == words[w + _PAD.planes] - 1:
            behind = floats(goal + 4 * (plane + 1) * s * t * high * wide)
            for j in range(min(words[w + _PAD.left], _ENDED)):
                behind[j] = 0.0


@native
def _copy(words: Any, bases: Any, w: int, part: int) -> None:
    """Rows of d elements, along three axes and the parts."""
    size = words[w + _COPY.size]
    source = _address(words, bases, w + _COPY.source) + size * part * words[w + _COPY.from_outer]
    goal = _address(words, bases, w + _COPY.goal) + size * part * words[w + _COPY.to_outer]
    d, step, pace = words[w + _COPY.d], words[w + _COPY.from_d], words[w + _COPY.to_d]
    for a in range(words[w + _COPY.a]):
        for b in range(words[w + _COPY.b]):
            for c in range(words[w + _COPY.c]):
                x = source + size * (
                    a * words[w + _COPY.from_a] + b * words[w + _COPY.from_b] + c * words[w + _COPY.from_c]
                )
                y = goal + size * (a * words[w + _COPY.to_a] + b * words[w + _COPY.to_b] + c * words[w + _COPY.to_c])
                if step == 1 and pace == 1:
                    copied(x, y, size * d)
                elif size == 1:
                    few, small = octets(x), octets(y)
                    for k in range(d):
                        small[k * pace] = few[k * step]
                else:
                    taken, put = floats(x), floats(y)
                    for k in range(d):
                        put[k * pace] = taken[k * step]


@native
def _pick(words: Any, bases: Any, w: int, part: int, wrong: int) -> None:
    """Rows from the places that tuples of indices name. Where one names none, 1 is written at `wrong`, and no row."""
    size, width, wide = words[w + _PICK.size], words[w + _PICK.width], words[w + _PICK.wide]
    repeat, tuples = words[w + _PICK.repeat], words[w + _PICK.tuples]
    source, goal = _address(words, bases, w + _PICK.source), _address(words, bases, w + _PICK.goal)
    indices, begins = _address(words, bases, w + _PICK.indices), integers(_address(words, bases, w + _PICK.begins))
    long, short = integers(indices), words_at(indices)
    along = integers(_address(words, bases, w + _PICK.along))  # for each index how many there are, and how far apart
    first = part * words[w + _PICK.rows_each]
    for row in range(first, min(first + words[w + _PICK.rows_each], words[w + _PICK.rows])):
        place = begins[row // repeat]
        inside = True
        for k in range(width):
            at = row % tuples * width + k
            index = long[at] if wide else numba.int64(short[at])
            count = along[2 * k]
            if index < 0:
                index += count
            if index < 0 or index >= count:
                inside = False
            place += index * along[2 * k + 1]
        if not inside:
            stored(wrong, 1)
        elif size == 4:
            floats(goal)[row] = floats(source)[place]
        else:
            copied(source + size * place, goal + size * row, size)


# ---- Products ---------------------------------------------------------------------------------


@native
def _convolution(words: Any, bases: Any, w: int, part: int, memory: int) -> None:
    """A block of columns of a band of rows: products of packed kernels with shifted data, then the steps of a chain.

    Columns are positions in rows of `wide` elements, of which the first `width` are kept.
    """
    each, terms, places = words[w + _CONVOLUTION.each], words[w + _CONVOLUTION.terms], words[w + _CONVOLUTION.places]
    block, band, depth = words[w + _CONVOLUTION.block], words[w + _CONVOLUTION.band], words[w + _CONVOLUTION.depth]
    wide, width, positions = (
        words[w + _CONVOLUTION.wide],
        words[w + _CONVOLUTION.width],
        words[w + _CONVOLUTION.positions],
    )
    family, groups = words[w + _CONVOLUTION.family], words[w + _CONVOLUTION.groups]
    groups_each, count = words[w + _CONVOLUTION.groups_each], words[w + _CONVOLUTION.count]
    blocks, bands = words[w + _CONVOLUTION.blocks], words[w + _CONVOLUTION.bands]
    start = part % blocks * block
    rest = part // blocks
    low = rest % bands * band
    rest //= bands
    some = (groups + groups_each - 1) // groups_each
    image = rest // some
    group = rest % some * groups_each
    n = min(block, places - start)
    high = min(low + band, each)
    pitch = 4 * ((n + LANES - 1) // LANES * LANES + LANES)
    padded = (each + family - 1) // family * family
    scratch = memory + 4 * _TOGETHER
    offsets = _address(words, bases, w + _CONVOLUTION.offsets)
    data = _address(words, bases, w + _CONVOLUTION.source) + image * words[w + _CONVOLUTION.image_bytes] + 4 * start
    goal = _address(words, bases, w + _CONVOLUTION.goal)
    matrices = _address(words, bases, w + _CONVOLUTION.kernels)
    order, form = words[w + _CONVOLUTION.order], words[w + _CONVOLUTION.form]
    size = _size(form)
    for g in range(group, min(group + groups_each, groups)):
        source = data + g * words[w + _CONVOLUTION.group_bytes]
        kernels = matrices + g * padded * terms * 4
        for first in range(0, terms, depth):
            k = min(depth, terms - first)
            _products(
                kernels + 4 * (padded * first + low * k), source, offsets + 8 * first, k, scratch, pitch, n,
                high - low, family, first == 0, order,
            )  # fmt: skip
        ahead = 1 + _SOON // n
        for m in range(low, high):
            channel = g * each + m
            row = (image * groups * each + channel) * positions
            sums = scratch + (m - low) * pitch
            if m + ahead < each:
                fetched(goal + size * (row + ahead * positions + start), n * size // 4)
            if wide == width:
                at = row + start
                mark = start if words[w + _CONVOLUTION.by_rows] else channel
                if order:
                    _scaled(words, bases, w, mark, sums, goal + size * at, at, n, memory)
                    continue
                _steps(words, bases, w + _CONVOLUTION.steps, count, mark, at, sums, goal + 4 * at, n, memory)
                continue
            y = start // wide
            x = start - y * wide
            at = row + y * width + min(x, width)
            begin = at
            kept = sums - 4 * at if order else goal
            k = 0
            while k < n:
                length = min(width - x, n - k)
                if length > 0:
                    row_copied(sums + 4 * k, kept + 4 * at, length)
                    at += length
                k += wide - x
                x = 0
            if at > begin and order:
                _scaled(words, bases, w, channel, sums, goal + size * begin, begin, at - begin, memory)
            elif at > begin:
                out = goal + 4 * begin
                _steps(words, bases, w + _CONVOLUTION.steps, count, channel, begin, out, out, at - begin, memory)


@native
def _products(
    kernels: int, source: int, offsets: int, k: int, goal: int, pitch: int, n: int, rows: int, family: int, first: bool,
    order: int,
) -> None:  # fmt: skip
    start = 0
    begin = 1 if first else 0
    if order:
        _byte_products(kernels, source, offsets, k, goal, pitch, n, rows, family, begin, order == SIGNED_ROWS)
        return
    while start < n:
        left = n - start
        columns = source + 4 * start
        into = goal + 4 * start
        if family == 1:
            if left > LANES:
                _fours(kernels, columns, offsets, k, into, pitch, begin)
                start += 4 * LANES
            else:
                _single(kernels, columns, offsets, k, into, pitch, begin)
                start += LANES
        else:
            vectors = min(3, (left + LANES - 1) // LANES)
            done = 0
            if family == ROWS and 0 < left % LANES <= _TAIL and left < 3 * LANES:
                if left > LANES:
                    vectors = left // LANES
                else:
                    done = rows // (_TAIL * ROWS) * _TAIL * ROWS
                    for m in range(0, done, _TAIL * ROWS):
                        a, c = kernels + 4 * m * k, into + m * pitch
                        if left == 1:
                            _tail1(a, columns, offsets, k, c, pitch, begin)
                        elif left == 2:
                            _tail2(a, columns, offsets, k, c, pitch, begin)
                        elif left == 3:
                            _tail3(a, columns, offsets, k, c, pitch, begin)
                        else:
                            _tail4(a, columns, offsets, k, c, pitch, begin)
            for m in range(done, rows, family):
                a, c = kernels + 4 * m * k, into + m * pitch
                if family == ROWS:
                    if vectors == 3:
                        _three8(a, columns, offsets, k, c, pitch, begin)
                    elif vectors == 2:
                        _two8(a, columns, offsets, k, c, pitch, begin)
                    else:
                        _one8(a, columns, offsets, k, c, pitch, begin)
                elif family == ROWS - 1:
                    if vectors == 3:
                        _three7(a, columns, offsets, k, c, pitch, begin)
                    elif vectors == 2:
                        _two7(a, columns, offsets, k, c, pitch, begin)
                    else:
                        _one7(a, columns, offsets, k, c, pitch, begin)
                elif vectors == 3:
                    _three6(a, columns, offsets, k, c, pitch, begin)
                elif vectors == 2:
                    _two6(a, columns, offsets, k, c, pitch, begin)
                else:
                    _one6(a, columns, offsets, k, c, pitch, begin)
            start += vectors * LANES


@native
def _byte_products(
    kernels: int, source: int, offsets: int, k: int, goal: int, pitch: int, n: int, rows: int, family: int, begin: int,
    signed_rows: bool,
) -> None:  # fmt: skip
    start = 0
    while start < n:
        left = n - start
        b, into = source + 4 * start, goal + 4 * start
        if family == 1:
            vectors = 4 if left > LANES else 1
            if vectors == 4 and signed_rows:
                _fours_r(kernels, b, offsets, k, into, pitch, begin)
            elif vectors == 4:
                _fours_c(kernels, b, offsets, k, into, pitch, begin)
            elif signed_rows:
                _single_r(kernels, b, offsets, k, into, pitch, begin)
            else:
                _single_c(kernels, b, offsets, k, into, pitch, begin)
        else:
            vectors = min(3, (left + LANES - 1) // LANES)
            for m in range(0, rows, ROWS):
                a, c = kernels + 4 * m * k, into + m * pitch
                if signed_rows:
                    if vectors == 3:
                        _three_r(a, b, offsets, k, c, pitch, begin)
                    elif vectors == 2:
                        _two_r(a, b, offsets, k, c, pitch, begin)
                    else:
                        _one_r(a, b, offsets, k, c, pitch, begin)
                elif vectors == 3:
                    _three_c(a, b, offsets, k, c, pitch, begin)
                elif vectors == 2:
                    _two_c(a, b, offsets, k, c, pitch, begin)
                else:
                    _one_c(a, b, offsets, k, c, pitch, begin)
        start += vectors * LANES


@native
def _scaled(words: Any, bases: Any, w: int, mark: int, sums: int, goal: int, at: int, n: int, memory: int) -> None:
    """The end of a row of sums of products of bytes. mark: its channel, or where its first column stands."""
    form, rows = words[w + _CONVOLUTION.form], words[w + _CONVOLUTION.by_rows]
    added = _address(words, bases, w + _CONVOLUTION.added) + 4 * mark
    totals = _address(words, bases, w + _CONVOLUTION.totals) + 4 * mark
    factor = _address(words, bases, w + _CONVOLUTION.factor) + 4 * mark
    shift = _address(words, bases, w + _CONVOLUTION.shift)
    zero = _zero(_address(words, bases, w + _CONVOLUTION.zero), words[w + _CONVOLUTION.zeros])
    if rows:
        rows_scaled(form, sums, added, totals, zero, factor, shift, goal, n)
    else:
        row_scaled(form, sums, added, totals, zero, factor, shift, goal, n)
    if form == FLOAT:
        _steps(words, bases, w + _CONVOLUTION.steps, words[w + _CONVOLUTION.count], mark, at, goal, goal, n, memory)


@native
def _zero(address: int, form: int) -> int:
    """A zero point as products of bytes have it, of which the data have no sign."""
    zero = octets(address)[0]
    return int(zero) if form == UINT8 else int(zero ^ 128)


# ---- Bytes ------------------------------------------------------------------------------------


@native
def _weave(words: Any, bases: Any, w: int, part: int) -> None:
    """Planes of words of the bytes of four channels, between zero points, split by position modulo the strides."""
    height, width = words[w + _WEAVE.height], words[w + _WEAVE.width]
    top, left, quads = words[w + _WEAVE.top], words[w + _WEAVE.left], words[w + _WEAVE.quads]
    channels, planes = words[w + _WEAVE.channels], words[w + _WEAVE.planes]
    s, t = words[w + _WEAVE.split_high], words[w + _WEAVE.split_wide]
    down, across = words[w + _WEAVE.phases_high], words[w + _WEAVE.phases_wide]
    high, wide = words[w + _WEAVE.high], words[w + _WEAVE.wide]
    mask = 0 if words[w + _WEAVE.kind] == UINT8 else 0x80808080
    beyond = 0x01010101 * _zero(_address(words, bases, w + _WEAVE.zero), words[w + _WEAVE.kind])
    source, goal = _address(words, bases, w + _WEAVE.source), _address(words, bases, w + _WEAVE.goal)
    area = height * width
    first = part * words[w + _WEAVE.planes_each]
    for plane in range(first, min(first + words[w + _WEAVE.planes_each], planes)):
        quad = plane % quads
        data = source + area * (plane // quads * channels + 4 * quad)
        some = min(4, channels - 4 * quad)
        out = goal + 4 * plane * down * across * high * wide
        goals = words_at(out)
        for a in range(down):
            for b in range(across):
                low = min(wide, max(0, -((b - left) // t)))  # the first j with j * t + b - left >= 0
                past = max(low, min(wide, (width - 1 - b + left) // t + 1))
                for i in range(high):
                    y = i * s + a - top
                    at = ((a * across + b) * high + i) * wide
                    if y < 0 or y >= height:
                        for j in range(wide):
                            goals[at + j] = numba.int32(beyond)
                        continue
                    for j in range(low):
                        goals[at + j] = numba.int32(beyond)
                    begin = data + y * width + low * t + b - left
                    if t <= 2:
                        woven(begin, area, some, mask, t, out + 4 * (at + low), past - low)
                    else:
                        for j in range(past - low):
                            woven(begin + j * t, area, some, mask, 1, out + 4 * (at + low + j), 1)
                    for j in range(past, wide):
                        goals[at + j] = numba.int32(beyond)
        if plane == planes - 1:
            behind = words_at(goal + 4 * planes * down * across * high * wide)
            for j in range(min(left, _ENDED)):
                behind[j] = numba.int32(beyond)


@native
def _lines(words: Any, bases: Any, w: int, part: int) -> None:
    """Rows of bytes, changed by a mask, with zeros behind each up to the length of the new rows."""
    length, pitch, mask = words[w + _LINES.length], words[w + _LINES.pitch], words[w + _LINES.mask]
    first = part * words[w + _LINES.rows_each]
    for row in range(first, min(first + words[w + _LINES.rows_each], words[w + _LINES.rows])):
        taken = octets(_address(words, bases, w + _LINES.source) + row * length)
        put = octets(_address(words, bases, w + _LINES.goal) + row * pitch)
        for k in range(length):
            put[k] = taken[k] ^ mask
        for k in range(length, pitch):
            put[k] = 0


@native
def _range(words: Any, bases: Any, w: int, part: int, scratch: int) -> None:
    """The least and the greatest of a part of the elements, or a NaN among them."""
    first = part * words[w + _RANGE.size_each]
    n = min(words[w + _RANGE.size_each], words[w + _RANGE.size] - first)
    source = _address(words, bases, w + _RANGE.source) + 4 * first
    goal = _address(words, bases, w + _RANGE.goal) + 8 * part
    low, high, wide = scratch, scratch + 4 * _WIDE, min(_WIDE, n)
    row_copied(source, low, wide)
    row_copied(source, high, wide)
    for start in range(_WIDE, n, _WIDE):
        some = min(_WIDE, n - start)
        row_with_row(LEAST, low, source + 4 * start, low, some)
        row_with_row(GREATEST, high, source + 4 * start, high, some)
    for k in range(1, wide):
        row_with_row(LEAST, low, low + 4 * k, low, 1)
        row_with_row(GREATEST, high, high + 4 * k, high, 1)
    row_copied(low, goal, 1)
    row_copied(high, goal + 4, 1)


@native
def _scale(words: Any, bases: Any, w: int, scratch: int) -> None:
    """The scale of data between two numbers, and their zero point: as a byte, and as a float in `beside`."""
    source = _address(words, bases, w + _SCALE.source)
    bounds = floats(scratch)
    bounds[0] = 0.0
    bounds[1] = 0.0
    for part in range(words[w + _SCALE.parts]):
        row_with_row(LEAST, scratch, source + 8 * part, scratch, 1)
        row_with_row(GREATEST, scratch + 4, source + 8 * part + 4, scratch + 4, 1)
    scale = (bounds[1] - bounds[0]) / numba.float32(255)
    floats(_address(words, bases, w + _SCALE.goal))[0] = scale
    bounds[2] = numba.float32(0) - bounds[0] / scale
    row_with_scalar(_NEAREST, scratch + 8, scratch, scratch + 8, 1)
    # A store of one byte by a mask that the compiler knows writes four (LLVM 20): so it is made in memory of its own.
    narrowed(UINT8, scratch + 8, scratch + 12, 1)
    zero = octets(scratch + 12)[0]
    octets(_address(words, bases, w + _SCALE.cell))[0] = zero
    floats(_address(words, bases, w + _SCALE.beside))[0] = numba.float32(zero)


@native
def _dots(words: Any, bases: Any, w: int, part: int, memory: int) -> None:
    """Products of one row with rows of a matrix, for each group."""
    terms, count, size = words[w + _DOTS.terms], words[w + _DOTS.count], words[w + _DOTS.rows_each]
    rows = words[w + _DOTS.rows]
    pieces = (rows + size - 1) // size
    group, first = part // pieces, part % pieces * size
    source = _address(words, bases, w + _DOTS.source) + group * words[w + _DOTS.source_bytes]
    kernels = _address(words, bases, w + _DOTS.kernels) + group * words[w + _DOTS.kernel_bytes]
    address = _address(words, bases, w + _DOTS.goal) + 4 * group * rows
    goal = floats(address)
    last = min(first + size, rows)
    for row in range(first, last):
        goal[row] = dot(kernels + 4 * row * terms, source, terms)
    at = address + 4 * first
    place = group * rows + first
    _steps(words, bases, w + _DOTS.steps, count, first, place, at, at, last - first, memory)


# ---- Pooling and normalization ----------------------------------------------------------------


@native
def _pool(words: Any, bases: Any, w: int, part: int, scratch: int) -> None:
    """The greatest element, the first of equal ones, or the mean of those under a window, in row-major order.

    Planes are laid between zeros, which a mean sums too, or what is least, and split where the stride along a row is
    above 2; those without padding are read where they are, if as much as whole vectors read lies behind them.
    """
    height, width = words[w + _POOL.height], words[w + _POOL.width]
    t, pace, planes = words[w + _POOL.split_wide], words[w + _POOL.pace], words[w + _POOL.planes]
    high, wide, down = words[w + _POOL.high], words[w + _POOL.wide], words[w + _POOL.down]
    rows, columns, mean = words[w + _POOL.rows], words[w + _POOL.columns], words[w + _POOL.mean]
    source, goal = _address(words, bases, w + _POOL.source), _address(words, bases, w + _POOL.goal)
    counts, offsets = _address(words, bases, w + _POOL.counts), _address(words, bases, w + _POOL.offsets)
    function = ADD if mean else GREATEST
    size = 4 * height * width
    plain = t == 1 and high == height and wide == width
    first = part * words[w + _POOL.planes_each]
    for plane in range(first, min(first + words[w + _POOL.planes_each], planes)):
        data = source + plane * size
        if not plain or (planes - 1 - plane) * size < 4 * 2 * pace * LANES:
            _plane(
                data, scratch, height, width, words[w + _POOL.top], words[w + _POOL.left], 1, t, high, wide,
                0.0 if mean else -math.inf,
            )  # fmt: skip
            data = scratch
        out = goal + 4 * plane * rows * columns
        for i in range(rows):
            below = data + 4 * i * down * wide
            combined(function, below, offsets, words[w + _POOL.taps], out + 4 * i * columns, columns, pace)
        if mean:
            row_with_row(DIVIDE, out, counts, out, rows * columns)


@native
def _mean(words: Any, bases: Any, w: int, part: int) -> None:
    """The mean of each plane."""
    places = words[w + _MEAN.places]
    source = _address(words, bases, w + _MEAN.source)
    goal = floats(_address(words, bases, w + _MEAN.goal))
    count = floats(_address(words, bases, w + _MEAN.divisor))[0]
    first = part * words[w + _MEAN.planes_each]
    for plane in range(first, min(first + words[w + _MEAN.planes_each], words[w + _MEAN.planes])):
        goal[plane] = total(source + 4 * plane * places, places) / count


@native
def _lrn(words: Any, bases: Any, w: int, part: int, scratch: int) -> None:
    """x / (addend + factor * sum) ** exponent: the sum of the squares of channels nearby."""
    channels, places, size = words[w + _LRN.channels], words[w + _LRN.places], words[w + _LRN.size]
    before, block = words[w + _LRN.before], words[w + _LRN.places_each]
    x = floats(_address(words, bases, w + _LRN.source))
    goal = floats(_address(words, bases, w + _LRN.goal))
    factor = floats(_address(words, bases, w + _LRN.factor))[0]
    addend = floats(_address(words, bases, w + _LRN.addend))[0]
    exponent = floats(_address(words, bases, w + _LRN.exponent))[0]
    parts = (places + block - 1) // block
    image, start = part // parts, part % parts * block
    n = min(block, places - start)
    sums = floats(scratch)
    for channel in range(channels):
        for k in range(n):
            sums[k] = 0.0
        for other in range(max(0, channel - before), min(channels, channel - before + size)):
            at = (image * channels + other) * places + start
            for k in range(n):
                sums[k] += x[at + k] * x[at + k]
        at = (image * channels + channel) * places + start
        if exponent == 0.75:
            for k in range(n):
                root = math.sqrt(float(addend + factor * sums[k]))
                goal[at + k] = x[at + k] / numba.float32(root * math.sqrt(root))
        else:
            for k in range(n):
                goal[at + k] = x[at + k] / numba.float32(math.pow(float(addend + factor * sums[k]), float(exponent)))


_FACTORS: Final = tuple(1.0 / math.factorial(k) for k in range(12, -1, -1))
_EVEN: Final = 1.5 * 2.0**52
"""Added to a number it leaves the nearest integer in the last bits."""


@native
def _exponential(x: float) -> Any:
    """e ** x for a number that is not positive, or a NaN, computed in double and rounded once; 0 below -200."""
    wide = max(float(x), -200.0) if x == x else float(x)
    shifted = wide * 1.4426950408889634 + _EVEN
    power = shifted - _EVEN
    # Two parts of the logarithm of 2, of which the first has few digits: the difference is nearly exact.
    r = (wide - power * 0.6931471803691238) - power * 1.9082149292705877e-10
    series = 1.0 / 6227020800.0
    for factor in _FACTORS:
        series = series * r + factor
    return numba.float32(series * power_of_two(shifted))


@native
def _softmax(words: Any, bases: Any, w: int, part: int, scratch: int) -> None:
    """Powers of e over their sum, along rows; the greatest element of a row is taken away first."""
    n = words[w + _SOFTMAX.length]
    first = part * words[w + _SOFTMAX.rows_each]
    greatest = floats(scratch)
    for row in range(first, min(first + words[w + _SOFTMAX.rows_each], words[w + _SOFTMAX.rows])):
        source = _address(words, bases, w + _SOFTMAX.source) + 4 * row * n
        goal = _address(words, bases, w + _SOFTMAX.goal) + 4 * row * n
        for k in range(_LANES):
            greatest[k] = -math.inf
        for start in range(0, n, _LANES):
            row_with_row(GREATEST, scratch, source + 4 * start, scratch, min(_LANES, n - start))
        for k in range(1, _LANES):
            if greatest[k] > greatest[0] or greatest[k] != greatest[k]:
                greatest[0] = greatest[k]
        row_with_scalar(SUBTRACT, source, scratch, goal, n)
        line = floats(goal)
        for k in range(n):
            line[k] = _exponential(line[k])
        greatest[0] = total(goal, n)
        row_with_scalar(DIVIDE, goal, scratch, goal, n)


@native
def _layer(words: Any, bases: Any, w: int, part: int, scratch: int) -> None:
    """Rows minus their mean, over the root of the mean of their squares and a number; steps have scale and bias."""
    n = words[w + _LAYER.length]
    count = floats(_address(words, bases, w + _LAYER.count))[0]
    epsilon = floats(_address(words, bases, w + _LAYER.epsilon))[0]
    first = part * words[w + _LAYER.rows_each]
    number = floats(scratch)
    squares = scratch + 4 * _TOGETHER
    for row in range(first, min(first + words[w + _LAYER.rows_each], words[w + _LAYER.rows])):
        source = _address(words, bases, w + _LAYER.source) + 4 * row * n
        goal = _address(words, bases, w + _LAYER.goal) + 4 * row * n
        number[0] = total(source, n) / count
        row_with_scalar(SUBTRACT, source, scratch, goal, n)
        row_with_row(MULTIPLY, goal, goal, squares, n)
        number[0] = numba.float32(1) / math.sqrt(total(squares, n) / count + epsilon)
        row_with_scalar(MULTIPLY, goal, scratch, goal, n)
        _steps(words, bases, w + _LAYER.steps, words[w + _LAYER.added], 0, 0, goal, goal, n, scratch)


# ---- Functions, and layers with a state -------------------------------------------------------


@native
def _apply(words: Any, bases: Any, w: int, part: int) -> None:
    """A function of each element."""
    first = part * words[w + _APPLY.size_each]
    n = min(words[w + _APPLY.size_each], words[w + _APPLY.size] - first)
    source = _address(words, bases, w + _APPLY.source) + 4 * first
    goal = _address(words, bases, w + _APPLY.goal) + 4 * first
    row_applied(words[w + _APPLY.function], _address(words, bases, w + _APPLY.tables), source, goal, n)


@native
def _cell(words: Any, bases: Any, w: int, part: int, scratch: int) -> None:
    """The new states of units of an LSTM, from the sums for the gates i, o, f and the cell."""
    size, first = words[w + _CELL.size], part * words[w + _CELL.size_each]
    last = min(first + words[w + _CELL.size_each], size)
    sums = _address(words, bases, w + _CELL.source)
    goal, cell = _address(words, bases, w + _CELL.goal), _address(words, bases, w + _CELL.cell)
    before = _address(words, bases, w + _CELL.before)
    into, out, forget = scratch, scratch + 4 * _UNITS, scratch + 8 * _UNITS
    for start in range(first, last, _UNITS):
        n, at = min(_UNITS, last - start), 4 * start
        row_applied(SIGMOID, 0, sums + at, into, n)
        row_applied(SIGMOID, 0, sums + 4 * size + at, out, n)
        row_applied(SIGMOID, 0, sums + 8 * size + at, forget, n)
        row_with_row(MULTIPLY, forget, before + at, forget, n)
        row_applied(TANH, 0, sums + 12 * size + at, goal + at, n)
        row_with_row(MULTIPLY, into, goal + at, into, n)
        row_with_row(ADD, forget, into, cell + at, n)
        row_applied(TANH, 0, cell + at, goal + at, n)
        row_with_row(MULTIPLY, out, goal + at, goal + at, n)


# ---- All of them ------------------------------------------------------------------------------


IDLE, POSTED, TAKEN, DONE = operations.IDLE, operations.POSTED, operations.TAKEN, operations.DONE
_DESK: Final = 64
_LOOKS: Final = 8000
"""Looks for another list before a thread sleeps: for about a tenth of a millisecond."""


def execute(
    listed: int, begins: int, count: int, based: int, counters: int, scratch: int, desks: int, helpers: int
) -> None:  # fmt: skip
    """Runs the operations in their order, together with any number of threads that call this at the same time.

    listed, begins, based: the addresses of the words, of the places where the operations begin, of the bases.
    counters: the address of two integers for each operation, 64 bytes apart, which were 0: the parts that are taken,
    and those that are done; behind them an integer, to which 1 is written where an index names no element. scratch:
    memory of this thread alone. desks: where so many other threads are told of the list, after the parameters up to
    `scratch` and the size of that memory for each thread.

    With listed = 0 it serves at desk `count` for a while.
    """
    if listed == 0:
        _serve(desks, desks + _DESK * count, count)
        return
    for number in range(1, helpers + 1):
        stored(desks + _DESK * number, POSTED)
    _operations(listed, begins, count, based, counters, scratch)
    for number in range(1, helpers + 1):
        desk = desks + _DESK * number
        if not exchanged(desk, POSTED, IDLE):
            looks = 0
            while seen(desk) != DONE:
                looks = _waited(looks)
            stored(desk, IDLE)


@native
def _serve(posted: int, desk: int, number: int) -> None:
    """Runs lists that are posted, until there was none for a while."""
    job = integers(posted)
    stored(desk + 8, 1)
    looks = 0
    while looks < _LOOKS:
        if seen(desk) == POSTED and exchanged(desk, POSTED, TAKEN):
            _operations(job[0], job[1], job[2], job[3], job[4], job[5] + number * job[6])
            stored(desk, DONE)
            looks = 0
        looks += 1
        paused()
    stored(desk + 8, 0)


@native
def _waited(looks: int) -> int:
    """Waits a moment, the longer the more often it was looked."""
    if looks > _PATIENCE:
        yielded()
    else:
        paused()
    return looks + 1


@native
def _operations(listed: int, begins: int, count: int, based: int, counters: int, scratch: int) -> None:
    words, starts, bases = integers(listed), integers(begins), integers(based)
    for number in range(count):
        w = starts[number]
        code, parts = words[w], words[w + 1]
        taken = counters + 128 * number
        done = taken + 64
        while True:
            part = counted(taken)
            if part >= parts:
                break
            if code == CONVOLUTION:
                _convolution(words, bases, w, part, scratch)
            elif code == CHAIN:
                _chain(words, bases, w, part, scratch)
            elif code == PAD:
                _pad(words, bases, w, part)
            elif code == COPY:
                _copy(words, bases, w, part)
            elif code == POOL:
                _pool(words, bases, w, part, scratch)
            elif code == DOTS:
                _dots(words, bases, w, part, scratch)
            elif code == MEAN:
                _mean(words, bases, w, part)
            elif code == LRN:
                _lrn(words, bases, w, part, scratch)
            elif code == SOFTMAX:
                _softmax(words, bases, w, part, scratch)
            elif code == LAYER:
                _layer(words, bases, w, part, scratch)
            elif code == APPLY:
                _apply(words, bases, w, part)
            elif code == CELL:
                _cell(words, bases, w, part, scratch)
            elif code == WEAVE:
                _weave(words, bases, w, part)
            elif code == LINES:
                _lines(words, bases, w, part)
            elif code == RANGE:
                _range(words, bases, w, part, scratch)
            elif code == SCALE:
                _scale(words, bases, w, scratch)
            elif code == PICK:
                _pick(words, bases, w, part, counters + 128 * count)
            counted(done)
        looks = 0
        while seen(done) < parts:
            looks = _waited(looks)
