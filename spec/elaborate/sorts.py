"""The algebra of sorts: which sort is accepted where, what two sorts have in common, how arithmetic combines them.

Besides the declared sorts there are, for operators: `Element` (an element of a tensor, in its element type), `Array` (a
tensor, of elements or of what a view holds), `Value` (a tensor, a sequence or an optional), `Type` (an element type, or
the type of such a value) and `Rational` (an exact rational). An index or shape vector is a `list Int`, a sequence of
tensors a `list Array`, an optional a `list Value` of at most one entry. `Any` stands for every sort. Sorts of maps have
no notation: `map K to` with V as element.
None means that the sort is unknown because of an earlier mistake; it agrees with everything.
"""

from __future__ import annotations

from ..language.syntax import INT, Expr, Sort

ANY, ELEMENT, RATIONAL, TYPE = Sort("Any"), Sort("Element"), Sort("Rational"), Sort("Type")
VALUE = Sort("Value")
VECTOR = Sort("list", INT)
CLASH = Sort("nothing")
"""The result of combining sorts that do not combine."""
BUILT_IN = frozenset({"Bool", "Int", "Text", "Any", "Element", "Array", "Value", "Type", "Rational"})
"""Sort names that need no declaration."""
ELEMENT_TYPES = frozenset((
    "float", "double", "float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "float8e8m0", "float6e2m3", "float6e3m2", "float4e2m1", "int2", "int4", "int8", "int16", "int32", "int64",
    "uint2", "uint4", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128", "string",
))  # fmt: skip
"""The element types in ONNX's spelling: constants of sort Type."""
CONVERSIONS = {
    ("Bool", "Element"): "; truth(e) makes a Bool of an element",
    ("Int", "Element"): "; integer(e) makes an Int of an element",
    ("Rational", "Element"): "; rational(e) makes a Rational of an element",
    ("Element", "Bool"): "; cast(t, e) makes an element of a Bool",
    ("Element", "Int"): "; cast(t, e) makes an element of a number",
    ("Element", "Rational"): "; cast(t, e) makes an element of a number",
    ("list", "Array"): "; values(x) makes a list of a tensor of integers",
}
"""Advice where a sort is expected and another one stands, by the names of the two."""


def conversion(expected: Sort | None, found: Sort | None) -> str:
    """Advice how to get the expected sort, "" where nothing is known."""
    if expected is None or found is None or (expected.name == "list" and expected.element != INT):
        return ""
    return CONVERSIONS.get((expected.name, found.name), "")


def mixing(left: Sort | None, right: Sort | None) -> str:
    """Advice where an element and something exact stand side by side, "" elsewhere."""
    return conversion(ELEMENT, right) if left == ELEMENT else conversion(ELEMENT, left) if right == ELEMENT else ""


def set_of(element: Sort | None) -> Sort:
    """The sort of sets of `element`."""
    return Sort("set", element or ANY)


def list_of(element: Sort | None) -> Sort:
    """The sort of lists of `element`."""
    return Sort("list", element or ANY)


def array_of(element: Sort | None) -> Sort:
    """The sort of tensors of `element`."""
    return Sort("Array", element or ANY)


def map_of(key: Sort | None, value: Sort | None) -> Sort:
    """The sort of maps from `key` to `value`."""
    return Sort(f"map {key or ANY} to", value or ANY)


def is_map(sort: Sort) -> bool:
    """True where `sort` was made by `map_of`."""
    return sort.name.startswith("map ")


MEMORY, CONTENT = Sort("Memory"), Sort("map Tensor to", Sort("Value"))
"""A memory is a finite map from tensors to values."""


def accepts(expected: Sort | None, found: Sort | None) -> bool:
    """True where `found` may stand for `expected`. A list stands for the set of its members."""
    if expected == MEMORY and found == CONTENT:
        return True
    if expected is None or found is None or "Any" in (expected.name, found.name):
        return True
    if expected.name == "Rational" and found == INT:
        return True
    if expected.name == "Array" and expected.element is None:
        return found.name == "Array"
    if expected == VALUE and found != VALUE:
        return found.name == "Array" or (found.name == "list" and accepts(VALUE, found.element))
    if expected.name == found.name or (expected.name == "set" and found.name == "list"):
        return accepts(expected.element, found.element)
    return False


def join(left: Sort | None, right: Sort | None) -> Sort | None:
    """The sort that both have in common, the more definite one of the two, or CLASH."""
    if left is None or right is None:
        return left or right
    if "Any" in (left.name, right.name):
        return right if left.name == "Any" else left
    for wide, narrow in ((left, right), (right, left)):
        if accepts(wide, narrow):
            return Sort(wide.name, join(wide.element, narrow.element)) if wide.element else wide
    return CLASH


def agree(left: Sort | None, right: Sort | None) -> bool:
    """True where the two have a value in common."""
    return join(left, right) != CLASH


def is_number(sort: Sort | None) -> bool:
    """Int, Rational, Element, or unknown."""
    return sort is None or sort in (INT, RATIONAL, ELEMENT) or sort.name == "Any"


def is_vector(sort: Sort | None) -> bool:
    """A list of exact numbers, or unknown."""
    return sort is None or (sort.name == "list" and (sort.element in (INT, RATIONAL) or sort.element == ANY))


def arithmetic(left: Sort | None, right: Sort | None) -> Sort | None:
    """The sort of a sum or product, componentwise where a list is involved; CLASH when they do not combine.

    Element and exact arithmetic never mix: a numeral is adapted before (`adapt`), anything else needs `cast`.
    """
    if left in (None, ANY) or right in (None, ANY):
        return right if left in (None, ANY) else left
    if is_vector(left) or is_vector(right):
        if (is_vector(left) or left in (INT, RATIONAL)) and (is_vector(right) or right in (INT, RATIONAL)):
            rational = RATIONAL in (left, right, left.element, right.element)
            return list_of(RATIONAL if rational else INT)
        return CLASH
    if ELEMENT in (left, right):
        return ELEMENT if left == right else CLASH
    if left in (INT, RATIONAL) and right in (INT, RATIONAL):
        return RATIONAL if RATIONAL in (left, right) else INT
    return CLASH


def is_literal(expr: Expr) -> bool:
    """True where the expression is made of numerals only, so that its sort adapts to that of an element."""
    match expr:
        case Expr(head="int" | "float"):
            return True
        case Expr(head="neg", args=(Expr() as inner,)):
            return is_literal(inner)
        case Expr(head="ite", args=(_, Expr() as then, Expr() as other)):
            return is_literal(then) and is_literal(other)
        case _:
            return False


def adapt(expr: Expr, sort: Sort | None, other: Sort | None) -> Sort | None:
    """The sort of `expr` beside something of sort `other`: a numeral is an element beside an element."""
    return ELEMENT if other == ELEMENT and is_literal(expr) else sort


def part(pattern: Sort, sort: Sort | None) -> Sort | None:
    """The part of `sort` at the innermost element of `pattern`, at which a signature has Any."""
    while pattern.element is not None:
        pattern, sort = pattern.element, sort.element if sort is not None else None
    return sort


def instance(pattern: Sort, value: Sort | None) -> Sort | None:
    """The sort with `value` in place of Any, None for an unknown one."""
    if pattern == ANY:
        return value
    return pattern if pattern.element is None else Sort(pattern.name, instance(pattern.element, value) or ANY)
