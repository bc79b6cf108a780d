"""Vector instructions, atomic counters and raw memory for functions that Numba compiles.

Every address is an integer. Loops are written as LLVM code here, since they must be vectors whatever the compiler can
prove of two addresses. An operation on elements is rounded once, in the order that is written; products in sums
are fused with the addition (FMA), as BLAS does, which the bound on sums in any order covers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import Parameter, Signature
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .operations import ADD, ERF, EXP, FLOATS, GREATEST, INT8, INT32, SIGMOID, SIGNED_ROWS, TANH, UINT8
from .operations import FLOAT as REAL
from .processor import BYTE_PRODUCTS, LANES, ROWS

I32, I64, FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()


def _function(result: Any, count: int, build: Callable[[Any, Sequence[Any]], Any]) -> Any:
    """A function of `count` integers, for code that Numba compiles."""

    def typed(_context: Any, *arguments: Any) -> Any:
        signature = result(*[types.int64] * count)

        def code(context: Any, builder: Any, _signature: Any, values: Sequence[Any]) -> Any:
            given = build(builder, values)
            return context.get_dummy_value() if given is None else given

        return signature, code

    names = ("context", *(f"x{k}" for k in range(count)))
    shown: Any = typed
    shown.__signature__ = Signature([Parameter(it, Parameter.POSITIONAL_OR_KEYWORD) for it in names])
    return shown


def _integer(value: int) -> Any:
    return ir.Constant(I64, value)


def _pointer(builder: Any, address: Any, of: Any) -> Any:
    return builder.inttoptr(address, of.as_pointer())


def _vector(of: int = LANES) -> Any:
    return ir.VectorType(FLOAT, of)


def _splat(builder: Any, value: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, vector.count), None))


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    of = a.type
    name = f"llvm.fma.v{of.count}f32" if isinstance(of, ir.VectorType) else "llvm.fma.f32"
    return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(of, [of] * 3), name), [a, b, c])


_AHEAD: Final = 1024
"""How far ahead of the kernels that are read now others are fetched, in floats."""


def _prefetched(builder: Any, address: Any, to_write: int = 0) -> None:
    """Has what lies at an address brought near, if it is memory at all."""
    place = _pointer(builder, address, ir.IntType(8))
    form = ir.FunctionType(ir.VoidType(), [place.type, I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0")
    builder.call(function, [place, ir.Constant(I32, to_write), ir.Constant(I32, 3), ir.Constant(I32, 1)])


def _negative_zero(of: Any) -> Any:
    """What a sum starts with: added to a first term it leaves that as it is, also where it is a zero."""
    zero = ir.Constant(FLOAT, -0.0)
    return ir.Constant(of, [zero] * of.count) if isinstance(of, ir.VectorType) else zero


# ---- Products ---------------------------------------------------------------------------------


def byte_products(builder: Any, total: Any, plain: Any, signed: Any, at_once: bool = BYTE_PRODUCTS) -> Any:
    """The integers of a vector, each with four products added: of the bytes of `plain`, and of `signed`, which have a
    sign. The sums wrap around. at_once: by one instruction of the processor."""
    if at_once:
        name = f"llvm.x86.avx512.vpdpbusd.{32 * LANES}"
        form = ir.FunctionType(total.type, [total.type] * 3)
        return builder.call(cgutils.get_or_insert_function(builder.module, form, name), [total, plain, signed])
    halves = ir.VectorType(ir.IntType(16), 2 * LANES)
    plain, signed = builder.bitcast(plain, halves), builder.bitcast(signed, halves)
    eight, low = (ir.Constant(halves, [ir.Constant(ir.IntType(16), it)] * (2 * LANES)) for it in (8, 255))
    pairs = (
        (builder.and_(plain, low), builder.ashr(builder.shl(signed, eight), eight)),
        (builder.lshr(plain, eight), builder.ashr(signed, eight)),
    )
    wide = ir.VectorType(I32, 2 * LANES)
    for pair in pairs:
        products = builder.mul(*(builder.sext(it, wide) for it in pair))
        for first in (0, 1):
            every = ir.Constant(ir.VectorType(I32, LANES), [ir.Constant(I32, 2 * k + first) for k in range(LANES)])
            total = builder.add(total, builder.shuffle_vector(products, products, every))
    return total


def block_product(rows: int, vectors: int, order: int = FLOATS) -> Any:
    """f(a, b, offsets, k, c, pitch, first): the product of `rows` rows with `vectors` vectors of columns.

    a: for each l < k the elements of the rows, packed; b + offsets[l]: the elements of the columns. The sums are
    written to the rows of c, which lie `pitch` bytes apart, or with first = 0 added to them. Of bytes an element is
    four of them, and the sums are integers.
    """
    of = FLOAT if order == FLOATS else I32

    def term_of(builder: Any, factor: Any, column: Any, total: Any) -> Any:
        if order == FLOATS:
            return _fma(builder, factor, column, total)
        return byte_products(builder, total, *((column, factor) if order == SIGNED_ROWS else (factor, column)))

    def build(builder: Any, values: Sequence[Any]) -> None:
        a, b, offsets, k, c, pitch, first = values
        vector = ir.VectorType(of, LANES)
        nothing = _negative_zero(vector) if order == FLOATS else ir.Constant(vector, None)
        add_of = builder.fadd if order == FLOATS else builder.add
        before = builder.block
        loop, store, add, end = (builder.append_basic_block(name) for name in ("terms", "store", "add", "end"))
        left, steps = _pointer(builder, a, of), _pointer(builder, offsets, I64)
        builder.branch(loop)
        builder.position_at_end(loop)
        term = builder.phi(I64)
        term.add_incoming(_integer(0), before)
        sums = [builder.phi(vector) for _ in range(rows * vectors)]
        at = _pointer(builder, builder.add(b, builder.load(builder.gep(steps, [term]))), of)
        columns = [
            builder.load(builder.bitcast(builder.gep(at, [_integer(v * LANES)]), vector.as_pointer()), align=4)
            for v in range(vectors)
        ]
        start = builder.mul(term, _integer(rows))
        fresh = []
        _prefetched(builder, builder.add(a, builder.mul(builder.add(start, _integer(_AHEAD)), _integer(4))))
        for r in range(rows):
            factor = _splat(builder, builder.load(builder.gep(left, [builder.add(start, _integer(r))])), vector)
            fresh += [term_of(builder, factor, columns[v], sums[r * vectors + v]) for v in range(vectors)]
        following = builder.add(term, _integer(1))
        term.add_incoming(following, loop)
        for total, new in zip(sums, fresh, strict=True):
            total.add_incoming(nothing, before)
            total.add_incoming(new, loop)
        done = builder.append_basic_block("done")
        builder.cbranch(builder.icmp_signed("<", following, k), loop, done)
        builder.position_at_end(done)
        goals = [
            _pointer(
                builder, builder.add(builder.add(c, builder.mul(pitch, _integer(r))), _integer(4 * v * LANES)), vector
            )
            for r in range(rows)
            for v in range(vectors)
        ]
        builder.cbranch(builder.icmp_signed("!=", first, _integer(0)), store, add)
        builder.position_at_end(store)
        for goal, new in zip(goals, fresh, strict=True):
            builder.store(new, goal, align=4)
        builder.branch(end)
        builder.position_at_end(add)
        for goal, new in zip(goals, fresh, strict=True):
            builder.store(add_of(builder.load(goal, align=4), new), goal, align=4)
        builder.branch(end)
        builder.position_at_end(end)

    return intrinsic(_function(types.void, 7, build))


def column_product(blocks: int, columns: int) -> Any:
    """f(a, b, offsets, k, c, pitch, first): as that of `block_product`, for a few columns: rows are side by side.

    a: `blocks` blocks of ROWS rows, one behind the other. Each sum is made of the same terms in the same order.
    """

    def build(builder: Any, values: Sequence[Any]) -> None:
        a, b, offsets, k, c, pitch, first = values
        vector = _vector(ROWS)
        before = builder.block
        loop, done = builder.append_basic_block("terms"), builder.append_basic_block("done")
        left, steps = _pointer(builder, a, FLOAT), _pointer(builder, offsets, I64)
        size = builder.mul(k, _integer(ROWS))
        builder.branch(loop)
        builder.position_at_end(loop)
        term = builder.phi(I64)
        term.add_incoming(_integer(0), before)
        sums = [builder.phi(vector) for _ in range(blocks * columns)]
        at = _pointer(builder, builder.add(b, builder.load(builder.gep(steps, [term]))), FLOAT)
        start = builder.mul(term, _integer(ROWS))
        rows = []
        for block in range(blocks):
            place = builder.gep(left, [builder.add(start, builder.mul(size, _integer(block)))])
            rows.append(builder.load(builder.bitcast(place, vector.as_pointer()), align=4))
        factors = [
            _splat(builder, builder.load(builder.gep(at, [_integer(column)])), vector) for column in range(columns)
        ]
        fresh = [
            _fma(builder, rows[block], factors[column], sums[block * columns + column])
            for block in range(blocks)
            for column in range(columns)
        ]
        following = builder.add(term, _integer(1))
        term.add_incoming(following, loop)
        for total, new in zip(sums, fresh, strict=True):
            total.add_incoming(_negative_zero(vector), before)
            total.add_incoming(new, loop)
        builder.cbranch(builder.icmp_signed("<", following, k), loop, done)
        builder.position_at_end(done)
        adds = builder.icmp_signed("==", first, _integer(0))
        for number, new in enumerate(fresh):
            block, column = divmod(number, columns)
            for r in range(ROWS):
                row = builder.mul(pitch, _integer(block * ROWS + r))
                goal = _pointer(builder, builder.add(builder.add(c, row), _integer(4 * column)), FLOAT)
                value = builder.extract_element(new, ir.Constant(I32, r))
                added = builder.fadd(builder.load(goal), value)
                builder.store(builder.select(adds, added, value), goal)

    return intrinsic(_function(types.void, 7, build))


def _summed(term: Callable[[Any, Sequence[Any], Any], Any], operands: int) -> Any:
    """f(*addresses, count): the sum of `term(builder, elements, total)` over rows of floats, four vectors at once."""
    unroll = 4

    def build(builder: Any, values: Sequence[Any]) -> Any:
        *addresses, count = values
        vector = _vector()
        pointers = [_pointer(builder, it, FLOAT) for it in addresses]
        step = LANES * unroll
        totals = [cgutils.alloca_once_value(builder, _negative_zero(vector)) for _ in range(unroll)]
        whole = builder.mul(builder.udiv(count, _integer(step)), _integer(step))
        with cgutils.for_range_slice(builder, _integer(0), whole, _integer(step), I64) as (at, _):
            for k, total in enumerate(totals):
                place = builder.add(at, _integer(k * LANES))
                loaded = [
                    builder.load(builder.bitcast(builder.gep(p, [place]), vector.as_pointer()), align=4)
                    for p in pointers
                ]
                builder.store(term(builder, loaded, builder.load(total)), total)
                if operands > 1:
                    far = builder.ptrtoint(builder.gep(pointers[0], [builder.add(place, _integer(_AHEAD))]), I64)
                    _prefetched(builder, far)
        rest = cgutils.alloca_once_value(builder, _negative_zero(FLOAT))
        with cgutils.for_range_slice(builder, whole, count, _integer(1), I64) as (at, _):
            loaded = [builder.load(builder.gep(p, [at])) for p in pointers]
            builder.store(term(builder, loaded, builder.load(rest)), rest)
        first, second, third, fourth = (builder.load(it) for it in totals)
        both = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
        width = LANES
        while width > 1:
            width //= 2
            halves = [
                builder.shuffle_vector(
                    both,
                    both,
                    ir.Constant(ir.VectorType(I32, width), [ir.Constant(I32, k + low) for k in range(width)]),
                )
                for low in (0, width)
            ]
            both = builder.fadd(*halves)
        return builder.fadd(builder.extract_element(both, ir.Constant(I32, 0)), builder.load(rest))

    return intrinsic(_function(types.float32, operands + 1, build))


dot: Final = _summed(lambda builder, pair, total: _fma(builder, pair[0], pair[1], total), 2)
"""dot(a, b, count): the sum of the products of two rows of floats."""
total: Final = _summed(lambda builder, one, sum_so_far: builder.fadd(sum_so_far, one[0]), 1)
"""total(a, count): the sum of a row of floats."""


# ---- Element by element -----------------------------------------------------------------------


def _least(builder: Any, x: Any, bound: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", x, bound), bound, x)


def _most(builder: Any, x: Any, bound: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, bound), bound, x)


def _lesser(builder: Any, x: Any, y: Any) -> Any:
    less = builder.select(builder.fcmp_ordered("<", y, x), y, x)
    return builder.select(builder.fcmp_unordered("uno", y, y), y, less)


def _nearest(builder: Any, x: Any) -> Any:
    name = f"llvm.rint.v{x.type.count}f32" if isinstance(x.type, ir.VectorType) else "llvm.rint.f32"
    return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(x.type, [x.type]), name), [x])


def _greatest(builder: Any, x: Any, y: Any) -> Any:
    greater = builder.select(builder.fcmp_ordered(">", y, x), y, x)  # one instruction
    return builder.select(builder.fcmp_unordered("uno", y, y), y, greater)


_BODIES: Final[Sequence[Callable[[Any, Any, Any], Any]]] = (
    lambda builder, x, y: builder.fadd(x, y),
    lambda builder, x, y: builder.fsub(x, y),
    lambda builder, x, y: builder.fmul(x, y),
    lambda builder, x, y: builder.fdiv(x, y),
    lambda builder, x, y: builder.fsub(y, x),
    lambda builder, x, y: builder.fdiv(y, x),
    _least,
    _most,
    _greatest,
    _lesser,
    lambda builder, x, _y: _nearest(builder, x),
)


def _elementwise(beside: bool) -> Any:
    def build(builder: Any, values: Sequence[Any]) -> None:
        function, x, y, out, count = values
        vector = _vector()
        sources, goal = _pointer(builder, x, FLOAT), _pointer(builder, out, FLOAT)
        others = _pointer(builder, y, FLOAT)
        whole = builder.mul(builder.udiv(count, _integer(LANES)), _integer(LANES))
        end = builder.append_basic_block("end")
        switch = builder.switch(function, end)
        for code, body in enumerate(_BODIES):
            block = builder.append_basic_block(f"function{code}")
            switch.add_case(_integer(code), block)
            builder.position_at_end(block)
            scalar = None if beside else builder.load(others)
            for of, step, first, last in ((vector, LANES, _integer(0), whole), (FLOAT, 1, whole, count)):
                fixed = None if scalar is None else scalar if of is FLOAT else _splat(builder, scalar, vector)
                with cgutils.for_range_slice(builder, first, last, _integer(step), I64) as (at, _):
                    places = [builder.bitcast(builder.gep(p, [at]), of.as_pointer()) for p in (sources, others, goal)]
                    left = builder.load(places[0], align=4)
                    right = builder.load(places[1], align=4) if fixed is None else fixed
                    builder.store(body(builder, left, right), places[2], align=4)
            builder.branch(end)
        builder.position_at_end(end)

    return intrinsic(_function(types.void, 5, build))


row_with_row: Final = _elementwise(True)
"""row_with_row(function, x, y, out, count): a function of two rows of floats; `out` may be one of them."""
row_with_scalar: Final = _elementwise(False)
"""row_with_scalar(function, x, y, out, count): a function of a row of floats and the float at y."""


def _changed(builder: Any, values: Sequence[Any]) -> None:
    functions, pace, operands, steps, x, out, count = values
    vector, unroll = _vector(), 4
    width = LANES * unroll
    given = _pointer(builder, operands, FLOAT)
    results = [cgutils.alloca_once(builder, vector) for _ in range(unroll)]
    lanes = ir.Constant(ir.VectorType(I64, LANES), [_integer(k) for k in range(LANES)])

    def block(at: Any, masks: Sequence[Any]) -> None:
        shift = builder.mul(at, _integer(4))
        for k, result in enumerate(results):
            place = _pointer(builder, builder.add(builder.add(x, shift), _integer(4 * k * LANES)), vector)
            loaded = builder.load(place, align=4) if not masks else _masked(builder, "load", vector, place, masks[k])
            builder.store(loaded, result)
        with cgutils.for_range(builder, steps, intp=I64) as loop:
            function = builder.load(_pointer(builder, builder.add(functions, builder.mul(loop.index, pace)), I64))
            operand = _splat(builder, builder.load(builder.gep(given, [loop.index])), vector)
            end = builder.append_basic_block("changed")
            switch = builder.switch(function, end)
            for code, body in enumerate(_BODIES):
                case = builder.append_basic_block(f"function{code}")
                switch.add_case(_integer(code), case)
                builder.position_at_end(case)
                for result in results:
                    builder.store(body(builder, builder.load(result), operand), result)
                builder.branch(end)
            builder.position_at_end(end)
        for k, result in enumerate(results):
            place = _pointer(builder, builder.add(builder.add(out, shift), _integer(4 * k * LANES)), vector)
            if masks:
                _masked(builder, "store", vector, place, masks[k], builder.load(result))
            else:
                builder.store(builder.load(result), place, align=4)

    whole = builder.mul(builder.udiv(count, _integer(width)), _integer(width))
    with cgutils.for_range_slice(builder, _integer(0), whole, _integer(width), I64) as (at, _):
        block(at, ())
    with builder.if_then(builder.icmp_signed("<", whole, count)):
        rest = builder.sub(count, whole)
        limits = [builder.sub(rest, _integer(k * LANES)) for k in range(unroll)]
        ends = [_splat(builder, it, ir.VectorType(I64, LANES)) for it in limits]
        block(whole, [builder.icmp_signed("<", lanes, it) for it in ends])


def _first_lanes(builder: Any, count: Any, of: int = LANES) -> Any:
    """The mask of the first lanes of a vector, as many as that."""
    lanes = ir.Constant(ir.VectorType(I64, of), [_integer(k) for k in range(of)])
    return builder.icmp_signed("<", lanes, _splat(builder, count, ir.VectorType(I64, of)))


def _masked(builder: Any, what: str, vector: Any, place: Any, mask: Any, value: Any = None) -> Any:
    """Loads or stores the elements of a vector where the mask holds."""
    common = [place.type, I32, mask.type]
    parameters = [*common, vector] if value is None else [vector, *common]
    form = ir.FunctionType(vector if value is None else ir.VoidType(), parameters)
    name = "f32" if vector.element == FLOAT else f"i{vector.element.width}"
    function = cgutils.get_or_insert_function(builder.module, form, f"llvm.masked.{what}.v{vector.count}{name}.p0")
    align = ir.Constant(I32, 1 if name == "i8" else 4)
    if value is None:
        return builder.call(function, [place, align, mask, ir.Constant(vector, None)])
    return builder.call(function, [value, place, align, mask])


changed: Final = intrinsic(_function(types.void, 7, _changed))
"""changed(functions, pace, operands, steps, x, out, count): functions of a row of floats, one after the other.

functions: the address of the first code, each `pace` bytes behind the one before; operands: that of their second
operands, which are numbers. `out` may be x."""


def _combined(builder: Any, values: Sequence[Any]) -> None:
    function, source, offsets, taps, goal, count, pace = values
    vector = _vector()
    steps = _pointer(builder, offsets, I64)
    least = ir.Constant(vector, [ir.Constant(FLOAT, -math.inf)] * LANES)
    even = ir.Constant(ir.VectorType(I32, LANES), [ir.Constant(I32, 2 * k) for k in range(LANES)])
    whole = builder.mul(builder.sdiv(count, _integer(LANES)), _integer(LANES))
    rest = builder.sub(count, whole)
    mask = _first_lanes(builder, rest)
    end = builder.append_basic_block("end")
    switch = builder.switch(builder.add(builder.mul(function, _integer(2)), builder.sub(pace, _integer(1))), end)
    for code, begin in ((ADD, _negative_zero(vector)), (GREATEST, least)):
        for far in (1, 2):
            block = builder.append_basic_block(f"function{code}")
            switch.add_case(_integer(2 * code + far - 1), block)
            builder.position_at_end(block)
            result = cgutils.alloca_once(builder, vector)

            def over_taps(at: Any, result: Any = result, begin: Any = begin, code: int = code, far: int = far) -> Any:
                builder.store(begin, result)
                place = builder.add(source, builder.mul(at, _integer(4 * far)))
                with cgutils.for_range(builder, taps, intp=I64) as loop:
                    start = builder.add(place, builder.load(builder.gep(steps, [loop.index])))
                    pieces = [
                        builder.load(_pointer(builder, builder.add(start, _integer(4 * k * LANES)), vector), align=4)
                        for k in range(far)
                    ]
                    element = pieces[0] if far == 1 else builder.shuffle_vector(*pieces, even)
                    builder.store(_BODIES[code](builder, builder.load(result), element), result)
                into = _pointer(builder, builder.add(goal, builder.mul(at, _integer(4))), vector)
                return into, builder.load(result)

            with cgutils.for_range_slice(builder, _integer(0), whole, _integer(LANES), I64) as (at, _):
                into, made = over_taps(at)
                builder.store(made, into, align=4)
            with builder.if_then(builder.icmp_signed(">", rest, _integer(0))):
                into, made = over_taps(whole)
                _masked(builder, "store", vector, into, mask, made)
            builder.branch(end)
    builder.position_at_end(end)


combined: Final = intrinsic(_function(types.void, 7, _combined))
"""combined(function, source, offsets, taps, goal, count, pace): for each k < count the sum (ADD), or the first of the
greatest (GREATEST), of the floats k * pace behind the bytes offsets[0], offsets[1] ... of the source, in this order.
pace: 1 or 2. Up to `pace` vectors more are read."""


# ---- Bytes ------------------------------------------------------------------------------------

_BYTE: Final = ir.IntType(8)
_FORMS: Final[Mapping[int, Any]] = {REAL: FLOAT, INT32: I32, UINT8: _BYTE, INT8: _BYTE}


def _in_rows(builder: Any, count: Any, body: Callable[[Any, Any], None]) -> None:
    """Calls body(at, mask) for vectors of a row: those that are whole without a mask, then for the rest with one."""
    whole = builder.mul(builder.sdiv(count, _integer(LANES)), _integer(LANES))
    with cgutils.for_range_slice(builder, _integer(0), whole, _integer(LANES), I64) as (at, _):
        body(at, None)
    rest = builder.sub(count, whole)
    with builder.if_then(builder.icmp_signed(">", rest, _integer(0))):
        body(whole, _first_lanes(builder, rest))


def _row_place(builder: Any, address: Any, at: Any, of: Any) -> Any:
    """The vector at an element of a row."""
    size = 1 if of == _BYTE else 4
    place = builder.add(address, builder.mul(at, _integer(size)))
    return _pointer(builder, place, ir.VectorType(of, LANES))


def _row_loaded(builder: Any, address: Any, at: Any, of: Any, mask: Any) -> Any:
    place = _row_place(builder, address, at, of)
    if mask is None:
        return builder.load(place, align=1 if of == _BYTE else 4)
    return _masked(builder, "load", ir.VectorType(of, LANES), place, mask)


def _row_stored(builder: Any, address: Any, at: Any, of: Any, mask: Any, value: Any) -> None:
    place = _row_place(builder, address, at, of)
    if mask is None:
        builder.store(value, place, align=1 if of == _BYTE else 4)
    else:
        _masked(builder, "store", ir.VectorType(of, LANES), place, mask, value)


def _as_bytes(builder: Any, x: Any, form: int) -> Any:
    """Whole numbers as bytes of a type, limited to it; a NaN gives 0."""
    low, high = (0, 255) if form == UINT8 else (-128, 127)
    bounds = [ir.Constant(x.type, [ir.Constant(FLOAT, float(it))] * LANES) for it in (low, high)]
    x = _most(builder, _least(builder, x, bounds[0]), bounds[1])
    x = builder.select(builder.fcmp_ordered("ord", x, x), x, ir.Constant(x.type, [ir.Constant(FLOAT, 0.0)] * LANES))
    return builder.trunc(builder.fptosi(x, ir.VectorType(I32, LANES)), ir.VectorType(_BYTE, LANES))


def _cases(builder: Any, code: Any, bodies: Mapping[int, Callable[[], None]]) -> None:
    """The one of these that a code names."""
    end = builder.append_basic_block("end")
    switch = builder.switch(code, end)
    for number, body in bodies.items():
        block = builder.append_basic_block(f"case{number}")
        switch.add_case(_integer(number), block)
        builder.position_at_end(block)
        body()
        builder.branch(end)
    builder.position_at_end(end)


def _widened(builder: Any, values: Sequence[Any]) -> None:
    form, source, goal, count = values

    def case(number: int) -> None:
        def body(at: Any, mask: Any) -> None:
            x = _row_loaded(builder, source, at, _FORMS[number], mask)
            if number != INT32:
                extend = builder.zext if number == UINT8 else builder.sext
                x = extend(x, ir.VectorType(I32, LANES))
            _row_stored(builder, goal, at, FLOAT, mask, builder.sitofp(x, _vector()))

        _in_rows(builder, count, body)

    _cases(builder, form, {it: partial(case, it) for it in (INT32, UINT8, INT8)})


widened: Final = intrinsic(_function(types.void, 4, _widened))
"""widened(form, source, goal, count): integers as floats."""


def _narrowed(builder: Any, values: Sequence[Any]) -> None:
    form, source, goal, count = values

    def case(number: int) -> None:
        def body(at: Any, mask: Any) -> None:
            x = _as_bytes(builder, _row_loaded(builder, source, at, FLOAT, mask), number)
            _row_stored(builder, goal, at, _BYTE, mask, x)

        _in_rows(builder, count, body)

    _cases(builder, form, {it: partial(case, it) for it in (UINT8, INT8)})


narrowed: Final = intrinsic(_function(types.void, 4, _narrowed))
"""narrowed(form, source, goal, count): floats that are whole numbers as bytes, limited; 0 for a NaN."""


def _scaled(by_rows: bool) -> Any:
    def build(builder: Any, values: Sequence[Any]) -> None:
        form, sums, added, totals, zero, factor, shift, goal, count = values
        times = _splat(builder, builder.trunc(zero, I32), ir.VectorType(I32, LANES))

        def operand(address: Any, of: Any) -> Callable[[Any, Any], Any]:
            if by_rows:
                return lambda at, mask: _row_loaded(builder, address, at, of, mask)
            one = _splat(builder, builder.load(_pointer(builder, address, of)), ir.VectorType(of, LANES))
            return lambda _at, _mask: one

        def case(number: int) -> None:
            add, total = operand(added, I32), operand(totals, I32)
            if number in (UINT8, INT8):
                by = operand(factor, FLOAT)
                onto = _splat(builder, builder.load(_pointer(builder, shift, FLOAT)), _vector())

            def body(at: Any, mask: Any) -> None:
                x = builder.add(_row_loaded(builder, sums, at, I32, mask), add(at, mask))
                x = builder.sub(x, builder.mul(total(at, mask), times))
                if number != INT32:
                    x = builder.sitofp(x, _vector())
                if number in (UINT8, INT8):
                    x = builder.fadd(_nearest(builder, builder.fmul(x, by(at, mask))), onto)
                    x = _as_bytes(builder, x, number)
                _row_stored(builder, goal, at, _FORMS[number], mask, x)

            _in_rows(builder, count, body)

        _cases(builder, form, {it: partial(case, it) for it in (REAL, INT32, UINT8, INT8)})

    return intrinsic(_function(types.void, 9, build))


row_scaled, rows_scaled = _scaled(False), _scaled(True)
"""row_scaled(form, sums, added, totals, zero, factor, shift, goal, count): of integers, each plus that at `added`,
minus `zero` times that at `totals`: the same, or floats, or bytes, which are the nearest integers to the products with
the float at `factor`, plus the float at `shift`, limited. For rows_scaled each of the integers has its own at `added`,
`totals` and `factor`. `goal` may be `sums`."""


def _woven(builder: Any, values: Sequence[Any]) -> None:
    source, plane, planes, mask, pace, goal, count = values
    words, read = ir.VectorType(I32, LANES), ir.VectorType(_BYTE, 2 * LANES)
    flip = _splat(builder, builder.trunc(mask, I32), words)
    last = builder.sub(planes, _integer(1))
    rows = [source]
    for k in (1, 2, 3):
        least = builder.select(builder.icmp_signed("<", last, _integer(k)), last, _integer(k))
        rows.append(builder.add(source, builder.mul(least, plane)))

    def case(far: int, single: bool) -> None:
        def body(at: Any, some: Any) -> None:
            made = None
            for k, row in enumerate(rows[:1] if single else rows):
                if far == 1:
                    x = builder.zext(_row_loaded(builder, row, at, _BYTE, some), words)
                else:
                    # The byte behind the last one that is taken is not read.
                    place = _pointer(builder, builder.add(row, builder.mul(at, _integer(2))), read)
                    left = builder.sub(builder.mul(builder.sub(count, at), _integer(2)), _integer(1))
                    pairs = _masked(builder, "load", read, place, _first_lanes(builder, left, 2 * LANES))
                    even = [ir.Constant(I32, 2 * lane) for lane in range(LANES)]
                    x = builder.shuffle_vector(pairs, pairs, ir.Constant(ir.VectorType(I32, LANES), even))
                    x = builder.zext(x, words)
                x = builder.shl(x, ir.Constant(words, [ir.Constant(I32, 8 * k)] * LANES))
                made = x if made is None else builder.or_(made, x)
            _row_stored(builder, goal, at, I32, some, builder.xor(made, flip))

        _in_rows(builder, count, body)

    code = builder.add(builder.mul(pace, _integer(2)), builder.zext(builder.icmp_signed("==", last, _integer(0)), I64))
    _cases(builder, code, {2 * far + one: partial(case, far, bool(one)) for far in (1, 2) for one in (0, 1)})


woven: Final = intrinsic(_function(types.void, 7, _woven))
"""woven(source, plane, planes, mask, pace, goal, count): `count` words of four bytes, changed by the mask: those that
lie `plane` bytes apart, the last of `planes` of them again where there are fewer, the next ones `pace` bytes behind:
1 or 2. Of one plane all others may be anything."""


# ---- Functions that are computed in double and rounded once ---------------------------------------

_WIDE: Final = ir.VectorType(ir.DoubleType(), LANES)
_FACTORS: Final = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))
_EVEN: Final = 1.5 * 2.0**52
"""Added to a number it leaves the nearest integer in the last bits."""
_GRID: Final = 4096
_TOP: Final = 6
_CLOSE: Final = 2.0**-10
"""Up to here the hyperbolic tangent is x - x ** 3 / 3, to a part in 10 ** 13."""


def _number(value: float) -> Any:
    return ir.Constant(_WIDE, [ir.Constant(ir.DoubleType(), value)] * LANES)


def _called(builder: Any, name: str, *operands: Any) -> Any:
    form = ir.FunctionType(_WIDE, [_WIDE] * len(operands))
    function = cgutils.get_or_insert_function(builder.module, form, f"llvm.{name}.v{LANES}f64")
    return builder.call(function, list(operands))


def _within(builder: Any, x: Any, low: float, high: float) -> Any:
    """The number, limited; a NaN stays one."""
    x = builder.select(builder.fcmp_ordered("<", x, _number(low)), _number(low), x)
    return builder.select(builder.fcmp_ordered(">", x, _number(high)), _number(high), x)


def _power(builder: Any, x: Any) -> Any:
    """e ** x, to about the last bit of a double; x from -200 to 200, or a NaN."""
    add, subtract, multiply = builder.fadd, builder.fsub, builder.fmul
    shifted = add(multiply(x, _number(1.4426950408889634)), _number(_EVEN))
    power = subtract(shifted, _number(_EVEN))
    # Two parts of the logarithm of 2, of which the first has few digits: the difference is nearly exact.
    r = subtract(x, multiply(power, _number(0.6931471803691238)))
    r = subtract(r, multiply(power, _number(1.9082149292705877e-10)))
    series = _number(_FACTORS[0])
    for factor in _FACTORS[1:]:
        series = add(multiply(series, r), _number(factor))
    integers = ir.VectorType(I64, LANES)
    bits = builder.add(builder.bitcast(shifted, integers), ir.Constant(integers, [_integer(1023)] * LANES))
    exponent = builder.shl(bits, ir.Constant(integers, [_integer(52)] * LANES))
    return multiply(series, builder.bitcast(exponent, _WIDE))


def _exp_of(builder: Any, x: Any, _tables: Any) -> Any:
    return _power(builder, _within(builder, x, -200.0, 200.0))


def _tanh_of(builder: Any, x: Any, _tables: Any) -> Any:
    size = _called(builder, "fabs", x)
    power = _power(builder, builder.fmul(_within(builder, size, 0.0, 20.0), _number(-2.0)))
    far = builder.fdiv(builder.fsub(_number(1.0), power), builder.fadd(_number(1.0), power))
    cube = builder.fmul(builder.fmul(size, size), size)
    near = builder.fsub(size, builder.fdiv(cube, _number(3.0)))
    both = builder.select(builder.fcmp_ordered("<", size, _number(_CLOSE)), near, far)
    return _called(builder, "copysign", both, x)


def _erf_of(builder: Any, x: Any, tables: Any) -> Any:
    """As `functions._erf_of`, operation by operation. tables: the error function, then its slope, at k / 4096."""
    add, subtract, multiply = builder.fadd, builder.fsub, builder.fmul
    size = _within(builder, _called(builder, "fabs", x), 0.0, _TOP)
    known = builder.select(builder.fcmp_ordered("ord", size, size), size, _number(_TOP))
    near = subtract(add(multiply(known, _number(_GRID)), _number(_EVEN)), _number(_EVEN))
    index = builder.fptosi(near, ir.VectorType(I64, LANES))
    c = multiply(near, _number(1 / _GRID))
    h = subtract(size, c)
    series = subtract(multiply(multiply(c, c), _number(2 / 3)), _number(1 / 3))
    for term in (c, _number(-1.0)):
        series = subtract(multiply(series, h), term)
    series = multiply(series, h)
    count = _TOP * _GRID + 1
    series = multiply(series, _looked_up(builder, builder.add(tables, _integer(8 * count)), index))
    series = add(series, _looked_up(builder, tables, index))
    return _called(builder, "copysign", series, x)


def _looked_up(builder: Any, table: Any, index: Any) -> Any:
    """The doubles of a table at these places."""
    integers = ir.VectorType(I64, LANES)
    shifts = builder.mul(index, ir.Constant(integers, [_integer(8)] * LANES))
    addresses = builder.add(_splat(builder, table, integers), shifts)
    places = builder.inttoptr(addresses, ir.VectorType(ir.DoubleType().as_pointer(), LANES))
    mask = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [ir.Constant(ir.IntType(1), 1)] * LANES)
    form = ir.FunctionType(_WIDE, [places.type, I32, mask.type, _WIDE])
    function = cgutils.get_or_insert_function(builder.module, form, f"llvm.masked.gather.v{LANES}f64.v{LANES}p0")
    return builder.call(function, [places, ir.Constant(I32, 8), mask, ir.Constant(_WIDE, None)])


def _sigmoid_of(builder: Any, x: Any) -> Any:
    """1 / (1 + e ** -x) of floats, each operation rounded to float."""
    vector = _vector()
    one = ir.Constant(vector, [ir.Constant(FLOAT, 1.0)] * LANES)
    power = _rounded(builder, builder.fneg(x), _exp_of, None)
    return builder.fdiv(one, builder.fadd(power, one))


def _rounded(builder: Any, x: Any, function: Any, tables: Any) -> Any:
    return builder.fptrunc(function(builder, builder.fpext(x, _WIDE), tables), _vector())


def _row_applied(builder: Any, values: Sequence[Any]) -> None:
    code, tables, x, out, count = values
    vector = _vector()
    bodies: dict[int, Callable[[Any], Any]] = {
        ERF: lambda it: _rounded(builder, it, _erf_of, tables),
        SIGMOID: lambda it: _sigmoid_of(builder, it),
        TANH: lambda it: _rounded(builder, it, _tanh_of, None),
        EXP: lambda it: _rounded(builder, it, _exp_of, None),
    }
    lanes = ir.Constant(ir.VectorType(I64, LANES), [_integer(k) for k in range(LANES)])
    end = builder.append_basic_block("end")
    switch = builder.switch(code, end)
    for number, body in bodies.items():
        block = builder.append_basic_block(f"function{number}")
        switch.add_case(_integer(number), block)
        builder.position_at_end(block)
        with cgutils.for_range_slice(builder, _integer(0), count, _integer(LANES), I64) as (at, _):
            shift = builder.mul(at, _integer(4))
            source, goal = (_pointer(builder, builder.add(it, shift), vector) for it in (x, out))
            rest = _splat(builder, builder.sub(count, at), ir.VectorType(I64, LANES))
            mask = builder.icmp_signed("<", lanes, rest)
            _masked(builder, "store", vector, goal, mask, body(_masked(builder, "load", vector, source, mask)))
        builder.branch(end)
    builder.position_at_end(end)


row_applied: Final = intrinsic(_function(types.void, 5, _row_applied))
"""row_applied(function, tables, x, out, count): a function of a row of floats, computed in double and rounded once;
`out` may be x. tables: of doubles, for the functions that have some."""


def _thinned(builder: Any, values: Sequence[Any]) -> None:
    source, goal, count = values
    vector = _vector()
    taken, put = _pointer(builder, source, FLOAT), _pointer(builder, goal, FLOAT)
    whole = builder.mul(builder.sdiv(builder.sub(count, _integer(1)), _integer(LANES)), _integer(LANES))
    even = ir.Constant(ir.VectorType(I32, LANES), [ir.Constant(I32, 2 * k) for k in range(LANES)])

    def places(at: Any) -> list[Any]:
        first = builder.mul(at, _integer(2))
        pair = (builder.gep(taken, [first]), builder.gep(taken, [builder.add(first, _integer(LANES))]))
        return [builder.bitcast(it, vector.as_pointer()) for it in (*pair, builder.gep(put, [at]))]

    with cgutils.for_range_slice(builder, _integer(0), whole, _integer(LANES), I64) as (at, _):
        low, high, into = places(at)
        loaded = [builder.load(it, align=4) for it in (low, high)]
        builder.store(builder.shuffle_vector(*loaded, even), into, align=4)
    # The last element of the last pair is not read.
    low, high, into = places(whole)
    rest = builder.sub(count, whole)
    read = builder.sub(builder.mul(rest, _integer(2)), _integer(1))
    loaded = [
        _masked(builder, "load", vector, it, _first_lanes(builder, left))
        for it, left in ((low, read), (high, builder.sub(read, _integer(LANES))))
    ]
    _masked(builder, "store", vector, into, _first_lanes(builder, rest), builder.shuffle_vector(*loaded, even))


thinned: Final = intrinsic(_function(types.void, 3, _thinned))
"""thinned(source, goal, count): copies every second float."""


def _row_copied(builder: Any, values: Sequence[Any]) -> None:
    source, goal, count = values
    vector = _vector()
    taken, put = _pointer(builder, source, FLOAT), _pointer(builder, goal, FLOAT)
    whole = builder.mul(builder.sdiv(count, _integer(LANES)), _integer(LANES))

    def places(at: Any) -> list[Any]:
        return [builder.bitcast(builder.gep(it, [at]), vector.as_pointer()) for it in (taken, put)]

    with cgutils.for_range_slice(builder, _integer(0), whole, _integer(LANES), I64) as (at, _):
        low, into = places(at)
        builder.store(builder.load(low, align=4), into, align=4)
    rest = builder.sub(count, whole)
    with builder.if_then(builder.icmp_signed(">", rest, _integer(0))):
        low, into = places(whole)
        mask = _first_lanes(builder, rest)
        _masked(builder, "store", vector, into, mask, _masked(builder, "load", vector, low, mask))


row_copied: Final = intrinsic(_function(types.void, 3, _row_copied))
"""row_copied(source, goal, count): copies floats; for rows that are too short to call a function for each."""


def _copied(builder: Any, values: Sequence[Any]) -> None:
    source, goal, size = values
    byte = ir.IntType(8)
    cgutils.raw_memcpy(builder, _pointer(builder, goal, byte), _pointer(builder, source, byte), size, 1)


def _fetched(builder: Any, values: Sequence[Any]) -> None:
    address, count = values
    with cgutils.for_range_slice(builder, _integer(0), count, _integer(16), I64) as (at, _):
        _prefetched(builder, builder.add(address, builder.mul(at, _integer(4))), 1)


fetched: Final = intrinsic(_function(types.void, 2, _fetched))
"""fetched(address, count): has floats brought near that are written soon."""


copied: Final = intrinsic(_function(types.void, 3, _copied))
"""copied(source, goal, size): copies bytes."""


_FLOATS, _INTEGERS = types.CPointer(types.float32), types.CPointer(types.int64)
_OCTETS, _WORDS = types.CPointer(types.uint8), types.CPointer(types.int32)
floats: Final = intrinsic(_function(_FLOATS, 1, lambda builder, at: _pointer(builder, at[0], FLOAT)))
"""floats(address): the floats there, to be indexed."""
octets: Final = intrinsic(_function(_OCTETS, 1, lambda builder, at: _pointer(builder, at[0], _BYTE)))
"""octets(address): the bytes there, to be indexed."""
words_at: Final = intrinsic(_function(_WORDS, 1, lambda builder, at: _pointer(builder, at[0], I32)))
"""words_at(address): the integers of 32 bits there, to be indexed."""
integers: Final = intrinsic(_function(_INTEGERS, 1, lambda builder, at: _pointer(builder, at[0], I64)))
"""integers(address): the integers there, to be indexed."""


def _power_of_two(_context: Any, _x: Any) -> Any:
    def code(_context: Any, builder: Any, _signature: Any, values: Sequence[Any]) -> Any:
        bits = builder.bitcast(values[0], I64)
        exponent = builder.shl(builder.add(bits, _integer(1023)), _integer(52))
        return builder.bitcast(exponent, ir.DoubleType())

    return types.float64(types.float64), code


power_of_two: Final = intrinsic(_power_of_two)
"""power_of_two(x): the power of two whose exponent is in the last bits of a double."""


def _address_of(_context: Any, _pointer_: Any) -> Any:
    return types.int64(_INTEGERS), lambda context, builder, signature, values: builder.ptrtoint(values[0], I64)


address_of: Final = intrinsic(_address_of)
"""address_of(pointer): the address that `integers` was given."""


# ---- Threads ----------------------------------------------------------------------------------


def _counted(builder: Any, values: Sequence[Any]) -> Any:
    return builder.atomic_rmw("add", _pointer(builder, values[0], I64), _integer(1), "acq_rel")


counted: Final = intrinsic(_function(types.int64, 1, _counted))
"""counted(counter): adds 1 to the integer at an address, for all threads; gives what it was."""


def _seen(builder: Any, values: Sequence[Any]) -> Any:
    return builder.load_atomic(_pointer(builder, values[0], I64), "acquire", 8)


seen: Final = intrinsic(_function(types.int64, 1, _seen))
"""seen(counter): the integer at an address, with all that other threads wrote before they counted."""


def _stored(builder: Any, values: Sequence[Any]) -> None:
    builder.store_atomic(values[1], _pointer(builder, values[0], I64), "release", 8)


stored: Final = intrinsic(_function(types.void, 2, _stored))
"""stored(address, value): writes an integer, after all that was written before, for threads that see it."""


def _exchanged(builder: Any, values: Sequence[Any]) -> Any:
    address, old, new = values
    pair = builder.cmpxchg(_pointer(builder, address, I64), old, new, "acq_rel", "acquire")
    return builder.zext(builder.extract_value(pair, 1), I64)


exchanged: Final = intrinsic(_function(types.int64, 3, _exchanged))
"""exchanged(address, old, new): writes an integer where the old one is there; gives 1 if so, else 0."""


def _paused(builder: Any, _values: Sequence[Any]) -> Any:
    if llvm.get_process_triple().startswith(("x86_64", "i386", "i686")):
        name = "llvm.x86.sse2.pause"
        builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), name), [])


paused: Final = intrinsic(_function(types.void, 0, _paused))
"""paused(): a moment's rest in a loop that waits."""


def _yielded(builder: Any, _values: Sequence[Any]) -> Any:
    if os.name == "posix":
        function = ir.FunctionType(I32, [])
        builder.call(cgutils.get_or_insert_function(builder.module, function, "sched_yield"), [])


yielded: Final = intrinsic(_function(types.void, 0, _yielded))
"""yielded(): lets other threads run, where the system offers that."""
