"""The smt interpretation of operators, exact numbers: integers as polynomials over atoms, rationals as terms.

An Int is a Python integer or a term of sort Int: a sum of products in a fixed order, so that equal polynomials are the
same term and `i + p - p` is `i`. A Rational is a Fraction or a `Real`, whose operators have an r in front: `r+`, `r<=`,
`rite`. A Bool is a term, TRUE and FALSE included; `iff` relates two of them. `flat i d` is the row-major position of
index i in shape d, `unflat k p d` component k of the index at position p.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce

from ...formulas.terms import FALSE, TRUE, Argument, Term, conjunction, disjunction, implication, negation

Int = int | Term


@dataclass(frozen=True, slots=True)
class Real:
    """A rational that is not a constant."""

    term: Term


Number = Int | Fraction | Real
Monomial = tuple[Term, ...]
Polynomial = dict[Monomial, int]


# ---- Integers ---------------------------------------------------------------------------------


def polynomial(number: Int) -> Polynomial:
    """The coefficients of the monomials of an integer. Must not be changed."""
    if not isinstance(number, Term):
        return {(): number} if number else {}
    return _polynomial(number)


@lru_cache(maxsize=200_000)
def _polynomial(term: Term) -> Polynomial:
    if term.op == "+":
        result: Polynomial = {}
        for part in term.args:
            for monomial, factor in polynomial(_int(part)).items():
                result[monomial] = result.get(monomial, 0) + factor
        return {monomial: factor for monomial, factor in result.items() if factor}
    if term.op == "*":
        factor, atoms = 1, []
        for part in term.args:
            if isinstance(part, Term):
                atoms.append(part)
            elif isinstance(part, int):
                factor *= part
        return {tuple(atoms): factor}
    return {(term,): 1}


def _int(part: Argument) -> Int:
    return Term(part) if isinstance(part, str) else part


@lru_cache(maxsize=200_000)
def printed(term: Argument) -> str:
    """How a term prints, put together from its parts, of which many stand in it more than once."""
    if not isinstance(term, Term):
        return repr(term)
    parts = list(map(printed, term.args))
    return f"Term(op={term.op!r}, args=({', '.join(parts)}{',' if len(parts) == 1 else ''}))"


def _order(monomial: Monomial) -> tuple[int, tuple[str, ...]]:
    return len(monomial), tuple(map(printed, monomial))


def _assemble(summands: Polynomial) -> Int:
    """The term of a polynomial, its monomials in a fixed order, the constant last."""
    parts: list[Int] = []
    monomials = [m for m, factor in summands.items() if factor and m]
    for monomial in sorted(monomials, key=_order) if len(monomials) > 1 else monomials:
        factor = summands[monomial]
        if factor == 1 and len(monomial) == 1:
            parts.append(monomial[0])
        else:
            parts.append(Term("*", (*(() if factor == 1 else (factor,)), *monomial)))
    constant = summands.get((), 0)
    if constant or not parts:
        parts.append(constant)
    return parts[0] if len(parts) == 1 else Term("+", tuple(parts))


def add(left: Int, right: Int) -> Int:
    """The sum."""
    if not isinstance(left, Term) and not isinstance(right, Term):
        return left + right
    total = dict(polynomial(left))
    for monomial, factor in polynomial(right).items():
        total[monomial] = total.get(monomial, 0) + factor
    return _assemble(total)


def negate(number: Int) -> Int:
    """The number with the other sign."""
    return multiply(-1, number)


def subtract(left: Int, right: Int) -> Int:
    """The difference."""
    return add(left, negate(right))


def multiply(left: Int, right: Int) -> Int:
    """The product."""
    if not isinstance(left, Term) and not isinstance(right, Term):
        return left * right
    product: Polynomial = {}
    for one, a in polynomial(left).items():
        for other, b in polynomial(right).items():
            monomial = one or other if not one or not other else tuple(sorted((*one, *other), key=printed))
            product[monomial] = product.get(monomial, 0) + a * b
    return _assemble(product)


def floor_div(left: Int, right: Int) -> Int:
    """The quotient rounded down, of which the divisor is not 0; multiples of the divisor are taken out."""
    if not isinstance(left, Term) and not isinstance(right, Term):
        return left // right
    whole, rest = _multiples(left, right)
    if isinstance(rest, int) and rest == 0:
        return whole
    if isinstance(rest, int) and isinstance(right, int):
        return add(whole, rest // right)
    return add(whole, Term("div", (rest, right)))


def floor_mod(left: Int, right: Int) -> Int:
    """The remainder of `floor_div`, with the divisor's sign."""
    if not isinstance(left, Term) and not isinstance(right, Term):
        return left % right
    _, rest = _multiples(left, right)
    if isinstance(rest, int) and (rest == 0 or isinstance(right, int)):
        return rest % right if isinstance(right, int) else 0
    return Term("mod", (rest, right))


def _multiples(number: Int, divisor: Int) -> tuple[Int, Int]:
    """The terms that the divisor, one monomial, divides, as a quotient; and the other terms."""
    parts = polynomial(divisor)
    if len(parts) != 1:
        return 0, number
    ((below, scale),) = parts.items()
    whole: Polynomial = {}
    rest: Polynomial = {}
    for monomial, factor in polynomial(number).items():
        left = list(monomial)
        fits = factor % scale == 0
        for atom in below:
            if atom in left:
                left.remove(atom)
            else:
                fits = False
        if fits:
            whole[tuple(left)] = whole.get(tuple(left), 0) + factor // scale
        else:
            rest[monomial] = factor
    return _assemble(whole), _assemble(rest)


# ---- Relations --------------------------------------------------------------------------------


@lru_cache(maxsize=200_000)
def at_most(left: Int, right: Int) -> Term:
    """left <= right, in a form that depends on the difference alone."""
    difference = polynomial(subtract(right, left))
    if not any(difference):
        return TRUE if difference.get((), 0) >= 0 else FALSE
    below = _assemble({m: -factor for m, factor in difference.items() if factor < 0})
    above = _assemble({m: factor for m, factor in difference.items() if factor > 0})
    return Term("<=", (below, above))


def less(left: Int, right: Int) -> Term:
    """left < right."""
    if not isinstance(left, Term) and not isinstance(right, Term):
        return TRUE if left < right else FALSE
    return at_most(add(left, 1), right)


def equal(left: Int, right: Int) -> Term:
    """left = right, in a form that depends on the difference alone, up to its sign."""
    if not isinstance(left, Term) and not isinstance(right, Term):
        return TRUE if left == right else FALSE
    difference = polynomial(subtract(left, right))
    if not any(difference):
        return FALSE if difference.get((), 0) else TRUE
    first = min((m for m in difference if m), key=_order)
    sign = 1 if difference[first] > 0 else -1
    positive = _assemble({m: sign * factor for m, factor in difference.items() if sign * factor > 0 and m})
    negative = {m: -sign * factor for m, factor in difference.items() if sign * factor < 0 or not m}
    return Term("=", (positive, _assemble(negative)))


def within(index: Int, size: Int) -> Term:
    """0 <= index < size."""
    return both(at_most(0, index), less(index, size))


def both(*terms: Term) -> Term:
    """The conjunction, nested ones taken apart."""
    if all(term is TRUE for term in terms):
        return TRUE
    return _term(conjunction(list(dict.fromkeys(part for term in terms for part in _parts("and", term)))))


def either(*terms: Term) -> Term:
    """The disjunction, nested ones taken apart."""
    return _term(disjunction(list(dict.fromkeys(part for term in terms for part in _parts("or", term)))))


def _parts(op: str, term: Term) -> tuple[Term, ...]:
    return tuple(part for part in term.args if isinstance(part, Term)) if term.op == op else (term,)


def opposite(term: Term) -> Term:
    """The negation; that of an inequality is an inequality."""
    if term.op == "<=":
        return less(_int(term.args[1]), _int(term.args[0]))
    if term.op == "and":
        return either(*(opposite(_term(part)) for part in term.args))
    if term.op == "or":
        return both(*(opposite(_term(part)) for part in term.args))
    return _term(negation(term))


def _term(argument: Argument) -> Term:
    return argument if isinstance(argument, Term) else Term(str(argument))


def choose(condition: Term, left: Int, right: Int) -> Int:
    """left where the condition holds, right elsewhere."""
    if condition == TRUE or left == right:
        return left
    if condition == FALSE:
        return right
    left, right = _under(condition, left, 1), _under(condition, right, 2)
    same, other = (left, right) if condition.op == "=" else (right, left)
    equation = condition if condition.op == "=" else condition.args[0] if condition.op == "not" else TRUE
    if isinstance(equation, Term) and equation.op == "=" and equation.args in ((other, same), (same, other)):
        return other  # x where x is k, and k where it is k, is x
    return left if left == right else Term("ite", (condition, left, right))


def _under(condition: Term, value: Int, branch: int) -> Int:
    """The value where a condition holds (branch 1) or does not (2), of an alternative by the same condition."""
    if isinstance(value, Term) and value.op == "ite" and value.args[0] == condition:
        return _int(value.args[branch])
    return value


def minimum(left: Int, right: Int) -> Int:
    """The smaller one."""
    return choose(at_most(left, right), left, right)


def maximum(left: Int, right: Int) -> Int:
    """The greater one."""
    return choose(at_most(right, left), left, right)


# ---- Rationals --------------------------------------------------------------------------------


def real(number: Number) -> Term:
    """The number as a term of sort Real."""
    match number:
        case Real(term):
            return term
        case Fraction():
            return Term("rational", (number.numerator, number.denominator))
        case Term():
            return Term("to_real", (number,))
        case _:
            return Term("rational", (number, 1))


def rational(operator: str, left: Number, right: Number) -> Number:
    """`+ - * /` of rationals; the divisor is not 0."""
    if isinstance(left, int | Fraction) and isinstance(right, int | Fraction):
        a, b = Fraction(left), Fraction(right)
        return a + b if operator == "+" else a - b if operator == "-" else a * b if operator == "*" else a / b
    if operator in "*/" and right == 1:
        return left
    return Real(Term(f"r{operator}", (real(left), real(right))))


def order(relation: str, left: Number, right: Number) -> Term:
    """`< <= > >= = !=` of numbers."""
    if not isinstance(left, Fraction | Real) and not isinstance(right, Fraction | Real):
        return _integers(relation, left, right)
    if isinstance(left, int | Fraction) and isinstance(right, int | Fraction):
        difference = Fraction(left) - Fraction(right)
        holds = {
            "<": difference < 0, "<=": difference <= 0, ">": difference > 0, ">=": difference >= 0,
            "=": difference == 0, "!=": difference != 0,
        }  # fmt: skip
        return TRUE if holds[relation] else FALSE
    one, other = real(left), real(right)
    match relation:
        case "<" | "<=" | "=":
            return Term(f"r{relation}", (one, other))
        case ">" | ">=":
            return Term("r<" if relation == ">" else "r<=", (other, one))
        case _:
            return Term("not", (Term("r=", (one, other)),))


def _integers(relation: str, left: Int, right: Int) -> Term:
    match relation:
        case "<":
            return less(left, right)
        case "<=":
            return at_most(left, right)
        case ">":
            return less(right, left)
        case ">=":
            return at_most(right, left)
        case "=":
            return equal(left, right)
        case _:
            return opposite(equal(left, right))


def floor(number: Number) -> Int:
    """The greatest integer that is not above the number."""
    if isinstance(number, Real):
        return Term("to_int", (number.term,))
    return number.numerator // number.denominator if isinstance(number, Fraction) else number


# The smt interpretation of operators, substitution: a formula with a number in place of a term, computed anew.


def substitute_term(value: Int, term: Term, number: Int) -> Int:
    """The value with a number in place of a term, computed anew."""
    if not isinstance(value, Term):
        return value
    if value == term:
        return number
    if not value.args:
        return value
    parts = [substitute_term(part, term, number) if isinstance(part, Term) else part for part in value.args]
    if all(new is old for new, old in zip(parts, value.args, strict=True)):
        return value
    return _rebuilt(value.op, parts)


def _rebuilt(op: str, parts: list[Argument]) -> Int:
    terms = [part for part in parts if isinstance(part, int | Term)]
    match op:
        case "+":
            return reduce(add, terms)
        case "*":
            return reduce(multiply, terms)
        case "div":
            return floor_div(terms[0], terms[1]) if terms[1] != 0 else Term(op, tuple(parts))
        case "mod":
            return floor_mod(terms[0], terms[1]) if terms[1] != 0 else Term(op, tuple(parts))
        case "<=":
            return at_most(terms[0], terms[1])
        case "=":
            return equal(terms[0], terms[1])
        case "ite":
            return choose(_formula(terms[0]), terms[1], terms[2])
        case "and":
            return both(*map(_formula, terms))
        case "or":
            return either(*map(_formula, terms))
        case "not":
            return opposite(_formula(terms[0]))
        case "=>":
            return _formula(implication(terms[0], terms[1]))
        case "forall" | "exists":
            return _listed(op, [str(part) for part in parts[:-1]], _formula(terms[-1]))
        case _:
            return Term(op, tuple(parts))


def _listed(op: str, variables: list[str], body: Term) -> Term:
    """A quantified formula, instance by instance where numbers bound its variables."""
    counts = [_bound(Term(variable), op, body) for variable in variables]
    if None in counts:
        return body if body in (TRUE, FALSE) else Term(op, (*variables, body))
    bodies = [body]
    for variable, count in zip(variables, counts, strict=True):
        bodies = [_formula(substitute_term(b, Term(variable), k)) for b in bodies for k in range(count or 0)]
    return both(*bodies) if op == "forall" else either(*bodies)


def _bound(variable: Term, op: str, body: Term) -> int | None:
    """The number that the body says the variable is below, where that is small."""
    for part in body.args if body.op == ("or" if op == "forall" else "and") else (body,):
        match part:
            case Term("<=", (int() as size, Term() as name)) if op == "forall" and name == variable:
                return size if size <= 8 else None
            case Term("<=", (Term("+", (Term() as name, 1)), int() as size)) if op == "exists" and name == variable:
                return size if size <= 8 else None
            case Term("<=", (Term() as name, int() as size)) if op == "exists" and name == variable:
                return size + 1 if size < 8 else None
    return None


def _formula(argument: Argument) -> Term:
    return argument if isinstance(argument, Term) else Term(str(argument))


def opened_goal(goal: Term) -> Term:
    """What is to be proved, at any values of the variables that it is to hold for all of."""
    match goal:
        case Term("and", parts):
            return both(*(opened_goal(part) for part in parts if isinstance(part, Term)))
        case Term("or", parts) if _told_apart(goal):
            return either(*(opened_goal(part) for part in parts if isinstance(part, Term)))
        case Term("forall", (*_, Term() as body)):
            return opened_goal(body)
        case _:
            return goal


def _told_apart(goal: Term) -> bool:
    """No two alternatives have a variable in common, so that each may be opened for itself."""
    bound = [name for part in goal.args if isinstance(part, Term) for name in sorted(_variables(part))]
    return len(set(bound)) == len(bound)


def _variables(term: Term) -> frozenset[str]:
    """The variables that quantifiers bind in a term."""
    own = frozenset(str(name) for name in term.args[:-1]) if term.op in ("forall", "exists") else frozenset()
    return own.union(*(_variables(part) for part in term.args if isinstance(part, Term)))


def definitions(facts: Iterable[Term]) -> Mapping[str, Term]:
    """The symbols of sizes and elements that an equation among the facts defines, with what they are."""
    defined: dict[str, Term] = {}
    for fact in facts:
        match fact:
            case Term("=", (Term(name, ()), Term() as value)) if ".size." in name or ".entry." in name:
                defined.setdefault(name, value)
            case _:
                pass
    return defined
