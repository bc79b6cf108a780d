"""The expression language of the debugger: parsed with Lark to data, never run as Python, and evaluated at a position.

It knows the timeline and no command.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from importlib.resources import files
from typing import Final

import numpy as np
from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, VisitError
from numpy.typing import NDArray

from ..machine.state import node_path, region_of, tensor_path
from ..model.elements import element_of, is_float
from ..model.path import operator_text, quote
from ..model.schemas import normal_domain
from ..model.values import Array, Value
from .timeline.history import History, NoValue, Refused
from .timeline.names import Instance, instance_of_path, tensor_named, value_of_instance

_LONGEST: Final = 4000
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class Number:
    """A numeral."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Text:
    """A text in single quotes, compared with what has texts."""

    value: str


@dataclass(frozen=True, slots=True)
class Special:
    """A fact of the position: $step, $op, ..."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """A tensor by its name. quoted: it cannot be a word of the language."""

    name: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class PathName:
    """A tensor by its path, with the numbers of the runs that it is of."""

    path: str


@dataclass(frozen=True, slots=True)
class Range:
    """A slice, as in NumPy."""

    start: Expression | None
    stop: Expression | None
    step: Expression | None


@dataclass(frozen=True, slots=True)
class Rest:
    """The axes that nothing is said about."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """Elements of a tensor."""

    of: Expression
    subscripts: tuple[Expression | Range | Rest, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator of the language, or a function, on its arguments."""

    name: str
    arguments: tuple[Expression, ...]
    call: bool = False


Expression = Number | Text | Special | Name | PathName | Sliced | Operation


def parse(text: str, front: str = "") -> Expression:
    """The expression that a text says. Raises Refused, with the column, for any other text.

    front: what the text begins with, where that is the name of a tensor and no expression.
    """
    if len(text) > _LONGEST:
        raise Refused(f"an expression has at most {_LONGEST} characters")
    if text.count("(") + text.count("[") + text.count("-") + text.count("not") > _DEEPEST:
        raise Refused(f"an expression has at most {_DEEPEST} brackets and signs")
    try:
        tree = _parser().parse((quote(front) if front else "") + text[len(front) :])
        expression: Expression = _Builder().transform(tree)
    except UnexpectedInput as error:
        column = getattr(error, "column", 1) - (len(quote(front)) - len(front) if front else 0)
        token = getattr(error, "token", None)
        if isinstance(token, Token) and token.type == "$END":
            raise Refused(f"{quote(text)}: this is not complete") from None
        raise Refused(f"{quote(text)}: this cannot be read from column {column} on") from None
    except VisitError as error:
        raise Refused(f"{quote(text)}: {error.orig_exc}") from None
    return expression


def expression_text(expression: Expression) -> str:
    """A text that says the expression: reading it gives the same one."""
    match expression:
        case Number(value=value):
            return repr(value)
        case Text(value=value):
            return f"'{value}'"
        case Special(name=name):
            return f"${name}"
        case Name(name=name, quoted=quoted):
            return quote(name) if quoted else name
        case PathName(path=path):
            return f"`{path}`"
        case Sliced(of=of, subscripts=subscripts):
            inner = f"({_operand(of)})" if isinstance(of, Operation) and not of.call else expression_text(of)
            return f"{inner}[{', '.join(map(_subscript, subscripts))}]"
        case Operation(name=name, arguments=arguments, call=True):
            return f"{name}({', '.join(map(expression_text, arguments))})"
        case Operation(name=name, arguments=()):
            return name
        case Operation(name=name, arguments=(argument,)):
            return f"not {_operand(argument)}" if name == "not" else f"-{_operand(argument)}"
        case Operation(name=name, arguments=arguments):
            return f" {name} ".join(map(_operand, arguments))


def _operand(expression: Expression) -> str:
    """In brackets, where it is an operation on something."""
    text = expression_text(expression)
    return f"({text})" if isinstance(expression, Operation) and expression.arguments and not expression.call else text


def _subscript(part: Expression | Range | Rest) -> str:
    if isinstance(part, Rest):
        return "..."
    if isinstance(part, Range):
        start, stop, step = ("" if it is None else expression_text(it) for it in (part.start, part.stop, part.step))
        return f"{start}:{stop}" + (f":{step}" if step else "")
    return expression_text(part)


@cache
def _parser() -> Lark:
    text = files(__package__).joinpath("expressions.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", maybe_placeholders=True)


@v_args(inline=True)
class _Builder(Transformer[Token, Expression]):
    """From the tree of the grammar to expressions."""

    def start(self, inner: Expression) -> Expression:
        return inner

    def either(self, *parts: Expression) -> Expression:
        return reduce(lambda a, b: Operation("or", (a, b)), parts)

    def both(self, *parts: Expression) -> Expression:
        return reduce(lambda a, b: Operation("and", (a, b)), parts)

    def negated(self, inner: Expression) -> Expression:
        return Operation("not", (inner,))

    def compared(self, left: Expression, relation: Token, right: Expression) -> Expression:
        return Operation(str(relation), (left, right))

    def calculated(self, first: Expression, *rest: Expression | Token) -> Expression:
        left = first
        for sign, item in zip(rest[::2], rest[1::2], strict=True):
            if not isinstance(item, Token):
                left = Operation(str(sign), (left, item))
        return left

    def signed(self, sign: Token, inner: Expression) -> Expression:
        return inner if sign == "+" else Operation("neg", (inner,))

    def sliced(self, of: Expression, *subscripts: Expression | Range | Rest | None) -> Expression:
        return Sliced(of, tuple(it for it in subscripts if it is not None))

    def position(self, inner: Expression) -> Expression:
        return inner

    def range_(self, *parts: Expression | Token | None) -> Range:
        ends: list[Expression | None] = [None]
        for part in parts:
            if isinstance(part, Token):
                ends.append(None)
            elif part is not None:
                ends[-1] = part
        start, stop, step = (*ends, None, None)[:3]
        return Range(start, stop, step)

    def rest(self, _dots: Token) -> Rest:
        return Rest()

    def integer(self, token: Token) -> Expression:
        value = int(token, 0) if token[:2] in ("0x", "0X") else int(token)
        if value >= 1 << 64:
            raise ValueError("a whole number is below 2**64")
        return Number(value)

    def decimal(self, token: Token) -> Expression:
        return Number(float(token))

    def text(self, token: Token) -> Expression:
        return Text(token[1:-1])

    def special(self, token: Token) -> Expression:
        return Special(token[1:])

    def quoted(self, token: Token) -> Expression:
        return Name(json.loads(token), quoted=True)

    def path(self, token: Token) -> Expression:
        return PathName(token[1:-1])

    def name(self, token: Token) -> Expression:
        if token in ("nan", "inf", "true", "false"):
            return Operation(str(token), ())
        return Name(str(token))

    def called(self, name: Token, *arguments: Expression | None) -> Expression:
        return Operation(str(name), tuple(it for it in arguments if it is not None), call=True)


# ---- Evaluation -----------------------------------------------------------------------------------

_LARGEST: Final = 1 << 26
"""Elements that an expression may compute."""
_PRODUCTS: Final = 1 << 30
_BINS: Final = 10


@dataclass(frozen=True, slots=True)
class Context:
    """A position at which expressions are evaluated. frame: the one that is looked at, counted from the innermost.

    old, new: the values before and after a write, for the condition of a watch.
    """

    history: History
    index: int
    frame: int = 0
    old: Value | None = None
    new: Value | None = None


def evaluate(expression: Expression, context: Context) -> Value | str:
    """The value of an expression. Raises Refused where it has none."""
    match expression:
        case Number(value=number):
            return np.asarray(number)
        case Text(value=text):
            return text
        case Special(name=name):
            return _special(name, context)
        case Name() | PathName():
            instance = instance_of(expression, context)
            value = value_of_instance(context.history, context.index, instance)
            if value is None:
                raise NoValue(f"{instance.path} has no value yet: ask why-not-ready for the node that gives it one")
            return value
        case Sliced(of=of, subscripts=subscripts):
            return _sliced(evaluate(of, context), subscripts, context)
        case Operation():
            return _operation(expression, context)


def holds(expression: Expression, context: Context) -> bool:
    """True where a condition holds; not where it needs a value that is not there. Raises Refused for no condition."""
    try:
        value = evaluate(expression, context)
    except NoValue:
        return False
    return _truth(value)


def _truth(value: Value | str) -> bool:
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype != object:
        return bool(value.reshape(-1)[0])
    raise Refused("a condition is one number or truth value: use any(...) or all(...)")


def instance_of(expression: Expression, context: Context) -> Instance:
    """The tensor that an expression names, in a run of its graph. Raises Refused for other expressions."""
    moment = context.history.at(context.index)
    if isinstance(expression, PathName):
        return instance_of_path(moment.state, expression.path)
    if not isinstance(expression, Name):
        raise Refused("give the name of a tensor")
    t = tensor_named(moment.state, moment.next, expression.name, context.frame)
    path = tensor_path(moment.state, t)
    if region_of(moment.state, t) is None:
        written = next(context.history.writes(t, context.index), None)
        if written is not None:
            path = tensor_path(context.history.at(written).state, t)
    return Instance(t, path)


def element_meant(expression: Expression, context: Context) -> tuple[Instance, tuple[int, ...], Array]:
    """One element of a tensor: `T[0, 1]`, or `T` alone when it has one element. Raises Refused."""
    instance, subscripts = tensor_and_subscripts(expression, context)
    value = value_of_instance(context.history, context.index, instance)
    if value is None:
        raise NoValue(f"{instance.path} has no value yet")
    if not isinstance(value, np.ndarray):
        raise Refused(f"{instance.path} is no tensor")
    index = indices(subscripts, value.shape, context)
    if any(not isinstance(it, int) for it in index):
        if value.size == 1 and not subscripts:
            return instance, (0,) * value.ndim, value
        raise Refused(f"give one element of {instance.path}, whose shape is {list(value.shape)}")
    return instance, tuple(it for it in index if isinstance(it, int)), value


def tensor_and_subscripts(
    expression: Expression, context: Context
) -> tuple[Instance, tuple[Expression | Range | Rest, ...]]:
    """A tensor and what is selected of it. Raises Refused for other expressions."""
    if isinstance(expression, Sliced):
        return instance_of(expression.of, context), expression.subscripts
    return instance_of(expression, context), ()


def indices(
    subscripts: tuple[Expression | Range | Rest, ...], shape: tuple[int, ...], context: Context
) -> tuple[int | slice, ...]:
    """For each axis a position, not negative, or a slice. Raises Refused for positions out of bounds."""
    given = [it for it in subscripts if not isinstance(it, Rest)]
    dots = len(subscripts) - len(given)
    if len(given) > len(shape) or dots > 1:
        raise Refused(f"{len(given)} subscripts for a tensor of {len(shape)} axes")
    at = next((i for i, it in enumerate(subscripts) if isinstance(it, Rest)), len(given))
    rest = [slice(None)] * (len(shape) - len(given))
    places: list[int | slice] = []
    for item in (*given[:at], *rest, *given[at:]):
        size = shape[len(places)]
        if isinstance(item, slice):
            places.append(item)
        elif isinstance(item, Range):
            ends = (_whole(item.start, context), _whole(item.stop, context), _whole(item.step, context))
            if ends[2] == 0:
                raise Refused("the step of a slice is not 0")
            places.append(slice(*ends))
        else:
            position = _whole(item, context)
            if position is None or not -size <= position < size:
                raise Refused(f"axis {len(places)} has the size {size}: there is no position {position}")
            places.append(position % size)
    return tuple(places)


# ---- Facts of the position --------------------------------------------------------------------


def _special(name: str, context: Context) -> Value | str:
    if name in ("old", "new"):
        value = context.old if name == "old" else context.new
        if value is None:
            raise Refused(f"${name} has no value here: it is for the condition of a watch")
        return value
    if name not in SPECIALS:
        raise Refused(f"there is no ${name}", tuple(f"${it}" for it in (*SPECIALS, "old", "new")))
    special = SPECIALS[name](context)
    return special if isinstance(special, str) else np.asarray(special)


def _op(context: Context) -> str:
    moment = context.history.at(context.index)
    if moment.next is None:
        return ""
    node = moment.state.program.model.nodes[moment.next]
    return operator_text(normal_domain(node.domain), node.op_type)


def _node(context: Context) -> str:
    moment = context.history.at(context.index)
    return "" if moment.next is None else node_path(moment.state, moment.next)


def _name(context: Context) -> str:
    moment = context.history.at(context.index)
    return "" if moment.next is None else moment.state.program.model.nodes[moment.next].name


def _depth(context: Context) -> int:
    depth, frame = 0, context.history.at(context.index).state.frame.below
    while frame is not None:
        depth, frame = depth + 1, frame.below
    return depth


SPECIALS: Mapping[str, Callable[[Context], int | str]] = {
    "step": lambda context: context.index,
    "op": _op,
    "node": _node,
    "name": _name,
    "run": lambda context: context.history.at(context.index).state.frame.run,
    "depth": _depth,
    "bytes": lambda context: context.history.at(context.index).state.store.memory.size,
}
"""The facts of a position by name: steps taken, the next node's operator, path and name, the run of the body, how many
bodies are around, the size of the memory."""


# ---- Slices -----------------------------------------------------------------------------------


def _sliced(value: Value | str, subscripts: tuple[Expression | Range | Rest, ...], context: Context) -> Value:
    items = getattr(value, "items", None)
    if isinstance(items, tuple) and len(subscripts) == 1 and not isinstance(subscripts[0], Range | Rest):
        position = _whole(subscripts[0], context)
        if position is None or not 0 <= position < len(items):
            raise Refused(f"it has {len(items)} items: there is no item {position}")
        item = items[position]
        whole: Value = item[1] if isinstance(item, tuple) else item
        return whole
    if not isinstance(value, np.ndarray):
        raise Refused("only tensors, sequences and maps have elements")
    return np.asarray(value[indices(subscripts, value.shape, context)], value.dtype)


def _whole(expression: Expression | None, context: Context) -> int | None:
    if expression is None:
        return None
    value = evaluate(expression, context)
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iub":
        return int(value.reshape(-1)[0])
    raise Refused("a position is one whole number")


# ---- Operators and functions ------------------------------------------------------------------


def numbers(value: Value | str) -> NDArray[np.generic]:
    """The elements as NumPy computes with them: double, 64-bit integers, complex, Booleans. Raises Refused."""
    if not isinstance(value, np.ndarray) or value.dtype == object:
        raise Refused("only numbers can be computed with")
    if value.dtype.kind in "bc":
        return value
    if is_float(value.dtype):
        return value.astype(np.float64)
    return value if value.dtype == np.uint64 else value.astype(np.int64)


_BINARY: Mapping[str, np.ufunc] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "==": np.equal, "!=": np.not_equal,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


def _operation(expression: Operation, context: Context) -> Value | str:
    name, arguments = expression.name, expression.arguments
    if expression.call:
        if name not in FUNCTIONS:
            raise Refused(f"there is no function {quote(name)}", tuple(FUNCTIONS))
        return FUNCTIONS[name](tuple(evaluate(it, context) for it in arguments))
    if name in ("and", "or"):
        left = _truth(evaluate(arguments[0], context))
        return np.asarray(left if left == (name == "or") else _truth(evaluate(arguments[1], context)))
    if name == "not":
        return np.asarray(not _truth(evaluate(arguments[0], context)))
    if not arguments:
        return np.asarray({"nan": math.nan, "inf": math.inf, "true": True, "false": False}[name])
    values = [evaluate(it, context) for it in arguments]
    if any(isinstance(it, str) for it in values):
        return _texts(name, values)
    with np.errstate(all="ignore"):
        if name == "neg":
            return np.asarray(
                np.subtract(0, numbers(values[0]))
                if numbers(values[0]).dtype.kind == "b"
                else np.negative(numbers(values[0]))
            )
        left_, right = (numbers(it) for it in values)
        if name == "@":
            return _matmul(left_, right)
        _limit(left_, right)
        try:
            return np.asarray(_BINARY[name](left_, right))
        except TypeError:
            raise Refused(f"{name} is not defined for {left_.dtype} and {right.dtype}") from None


def _texts(name: str, values: list[Value | str]) -> Value:
    left, right = (it if isinstance(it, str) else _as_text(it) for it in values)
    if name in ("==", "!="):
        return np.asarray((left == right) == (name == "=="))
    raise Refused(f"{name} is not defined for texts")


def _as_text(value: Value) -> str:
    if isinstance(value, np.ndarray) and value.dtype == object and value.size == 1:
        return bytes(value.reshape(-1)[0]).decode("utf-8", "surrogateescape")
    raise Refused("a text is compared with a text")


def _limit(left: NDArray[np.generic], right: NDArray[np.generic]) -> None:
    try:
        shape = np.broadcast_shapes(left.shape, right.shape)
    except ValueError:
        raise Refused(f"the shapes {list(left.shape)} and {list(right.shape)} do not fit each other") from None
    if math.prod(shape) > _LARGEST:
        raise Refused(f"this would compute {math.prod(shape)} elements: take a slice")


def _matmul(left: NDArray[np.generic], right: NDArray[np.generic]) -> Value:
    """The matrix product, in double precision or 64-bit integers, summed as NumPy does."""
    if left.ndim and right.ndim and left.size * (right.shape[-1] if right.ndim > 1 else 1) > _PRODUCTS:
        raise Refused(f"this would take more than {_PRODUCTS} products: take a slice")
    try:
        return np.asarray(np.matmul(left, right))
    except (ValueError, TypeError):
        raise Refused(f"the shapes {list(left.shape)} and {list(right.shape)} are not of factors of @") from None


def _one(values: tuple[Value | str, ...], name: str) -> Value:
    if len(values) != 1 or isinstance(values[0], str):
        raise Refused(f"{name} takes one tensor")
    return values[0]


def _array(values: tuple[Value | str, ...], name: str) -> Array:
    array = _one(values, name)
    if not isinstance(array, np.ndarray):
        raise Refused(f"{name} takes a tensor")
    return array


def _reduced(name: str, operation: Callable[[NDArray[np.generic]], object]) -> Callable[..., Value]:
    def apply(values: tuple[Value | str, ...]) -> Value:
        number = numbers(_one(values, name))
        if not number.size and name in ("min", "max", "mean"):
            raise Refused(f"{name} of no elements has no value")
        if number.dtype.kind == "c" and name in ("min", "max"):
            raise Refused(f"{name} of complex numbers has no value")
        with np.errstate(all="ignore"):
            return np.asarray(operation(number))

    return apply


def _each(name: str, operation: Callable[[NDArray[np.generic]], object]) -> Callable[..., Value]:
    def apply(values: tuple[Value | str, ...]) -> Value:
        return np.asarray(operation(numbers(_one(values, name))))

    return apply


def _wide(number: NDArray[np.generic]) -> type[np.complex128 | np.float64]:
    return np.complex128 if number.dtype.kind == "c" else np.float64


def _sum(values: tuple[Value | str, ...]) -> Value:
    """Integers exactly, others in double precision; NumPy's order."""
    number = numbers(_one(values, "sum"))
    if number.dtype.kind not in "iu":
        return np.asarray(np.sum(number))
    total = sum(number.ravel().tolist()) if number.size <= _LARGEST else 0
    if not -(1 << 63) <= total < 1 << 63:
        raise Refused("the sum lies beyond 64 bits")
    return np.asarray(total, np.int64)


def _position(name: str, operation: Callable[[NDArray[np.generic]], np.intp]) -> Callable[..., Value]:
    def apply(values: tuple[Value | str, ...]) -> Value:
        number = numbers(_one(values, name))
        if not number.size or number.dtype.kind == "c":
            raise Refused(f"{name} of no elements, or of complex numbers, has no value")
        return np.asarray(np.unravel_index(operation(number), number.shape), np.int64)

    return apply


def _histogram(values: tuple[Value | str, ...]) -> Value:
    """A row for each of some bins of the same width: its ends, and how many of the finite elements are in it."""
    if not 1 <= len(values) <= 2:
        raise Refused("histogram takes one tensor, and how many bins")
    bins = _BINS if len(values) == 1 else int(_array(values[1:], "histogram").reshape(-1)[:1].astype(np.int64).sum())
    number = numbers(_one(values[:1], "histogram"))
    if not 1 <= bins <= 1000 or number.dtype.kind == "c":
        raise Refused("histogram takes a tensor of real numbers, and 1 to 1000 bins")
    finite = number.astype(np.float64)[np.isfinite(number)]
    if not finite.size:
        raise Refused("there are no finite elements")
    with np.errstate(all="ignore"):
        try:
            counts, ends = np.histogram(finite, bins)
        except ValueError:
            raise Refused("the elements lie too far apart, or too near, for bins of the same width") from None
    return np.stack([ends[:-1], ends[1:], counts.astype(np.float64)], axis=1)


def _where(values: tuple[Value | str, ...]) -> Value:
    if len(values) != 3 or any(isinstance(it, str) for it in values):
        raise Refused("where takes a condition and two tensors")
    condition, yes, other = (numbers(it) for it in values)
    _limit(np.broadcast_to(np.False_, condition.shape), yes)
    _limit(np.broadcast_to(np.False_, np.broadcast_shapes(condition.shape, yes.shape)), other)
    return np.asarray(np.where(condition.astype(np.bool_), yes, other))


def _shape(values: tuple[Value | str, ...]) -> Value:
    return np.asarray(_array(values, "shape").shape, np.int64)


def _dtype(values: tuple[Value | str, ...]) -> str:
    return element_of(_array(values, "dtype").dtype)


def _count(values: tuple[Value | str, ...]) -> Value:
    return np.asarray(np.count_nonzero(numbers(_one(values, "count"))))


def _ulp(values: tuple[Value | str, ...]) -> Value:
    """The distance of a number from the next one away from zero; of two tensors of a type, how many numbers apart."""
    arrays = [it for it in values if isinstance(it, np.ndarray)]
    if len(arrays) != len(values) or len(values) not in (1, 2):
        raise Refused("ulp takes one tensor, or two of the same float type")
    if any(not is_float(it.dtype) for it in arrays) or len({it.dtype for it in arrays}) > 1:
        raise Refused("ulp takes tensors of one float type")
    if len(arrays) == 2:
        _limit(*arrays)
        odd = np.isnan(numbers(arrays[0])) | np.isnan(numbers(arrays[1]))
        apart = np.abs(_ordered(arrays[0]) - _ordered(arrays[1])).astype(np.float64)
        return np.asarray(np.where(odd, math.nan, apart))
    value = np.abs(numbers(arrays[0])).astype(arrays[0].dtype)
    bits = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}")
    beyond = (bits + 1).astype(bits.dtype).view(value.dtype).reshape(value.shape)
    with np.errstate(all="ignore"):
        return np.asarray(beyond.astype(np.float64) - value.astype(np.float64))


def _ordered(array: Array) -> NDArray[np.int64]:
    """Numbers in the order of the floats, without gaps; both zeros are 0."""
    bits = np.ascontiguousarray(array).reshape(array.shape).view(f"i{array.dtype.itemsize}").astype(np.int64)
    magnitude = bits & ((1 << (8 * array.dtype.itemsize - 1)) - 1)
    return np.where(bits < 0, -magnitude, magnitude)


FUNCTIONS: Mapping[str, Callable[[tuple[Value | str, ...]], Value | str]] = {
    "any": _reduced("any", np.any),
    "all": _reduced("all", np.all),
    "min": _reduced("min", np.min),
    "max": _reduced("max", np.max),
    "sum": _sum,
    "mean": _reduced("mean", lambda it: np.divide(np.sum(it, dtype=_wide(it)), it.size)),
    "norm": _reduced("norm", lambda it: np.sqrt(np.sum(np.square(np.abs(it.astype(np.complex128)))))),
    "argmax": _position("argmax", np.argmax),
    "argmin": _position("argmin", np.argmin),
    "histogram": _histogram,
    "where": _where,
    "abs": _each("abs", np.abs),
    "isnan": _each("isnan", np.isnan),
    "isinf": _each("isinf", np.isinf),
    "count": _count,
    "shape": _shape,
    "dtype": _dtype,
    "ulp": _ulp,
}
"""The functions of the language. They compute in double precision and 64-bit integers, for a person to look at: no
function is an operator of ONNX."""
