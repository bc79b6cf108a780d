"""Formulas of the specification over finite sets: parse trees become functions of the values of their variables.

Meaning. Truth has three values: a connective or quantifier is unknown only where its unknown parts matter (Kleene);
every other operation is unknown as soon as an argument is. Unknown too: a fact that says nothing at its arguments, a
position outside of a list, a division by zero, a case without an arm. A quantifier goes through the members of a set
or list, each once, in order. A definition stands for its body, an inductive predicate for what `atoms` says of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lark import Tree
from sonnx.semantics.errors import Unsupported

from .operators.text import unquoted
from .text import Declaration, Node, Text, sort_of
from .values import UNKNOWN, Element, Key, Open, Tables, Value

Env = list[Value]
Code = Callable[[Env], Value]
Atom = Callable[[Key], Value]
"""The truth of an inductive predicate at its arguments."""


@dataclass(frozen=True, slots=True)
class Context:
    """The surroundings of a formula: the text, the facts, inductive predicates that are given, the variables in scope.

    slots: the sorts of all variables so far, by their place in the environment. within: the definitions around.
    """

    text: Text
    tables: Tables
    atoms: Callable[[str], Atom | None]
    slots: list[str] = field(default_factory=list)
    scope: Mapping[str, int] = field(default_factory=dict)
    within: tuple[str, ...] = ()

    def bound(self, name: str, sort: str) -> tuple[int, Context]:
        """A new variable: its slot, and the context in which it is in scope."""
        self.slots.append(sort)
        slot = len(self.slots) - 1
        return slot, replace(self, scope={**self.scope, name: slot})

    def function(self, name: str) -> Declaration:
        """The declaration that a call names."""
        declared = self.text.declaration(name)
        if declared is None or declared.kind not in ("fact", "define", "inductive"):
            raise Unsupported(f"the text applies {name}, which this rechecker cannot evaluate")
        return declared


def compiled(tree: object, context: Context) -> Code:
    """The function that an expression denotes. Raises Unsupported for what formulas of constraints do not contain."""
    if isinstance(tree, Tree) and tree.data in _FORMS:
        return _FORMS[tree.data](tree, context)
    raise Unsupported(f"this rechecker gives no meaning to {getattr(tree, 'data', tree)}")


def sort(tree: object, context: Context) -> str:
    """The sort of an expression, as far as it is read off: of variables, calls, literals, lists and sets."""
    match tree:
        case Tree(data="var", children=[name]):
            return context.slots[context.scope[str(name)]] if str(name) in context.scope else ""
        case Tree(data="call", children=["len", *_]):
            return "Int"
        case Tree(data="call", children=[name, *_]):
            return sort_of(context.function(str(name)).result) or "Bool"
        case Tree(data="text"):
            return "Text"
        case Tree(data="vector" | "comprehension", children=[first, *_]):
            return f"list {sort(first, context)}" if first is not None else "list"
        case Tree(data="set_comprehension"):
            return "set"
        case Tree(data="index", children=[items, *_]):
            return sort(items, context).removeprefix("list ")
    return "Int"


def children(tree: Node) -> list[Node]:
    """The parts of a node that are trees."""
    return [child for child in tree.children if isinstance(child, Tree)]


# ---- Literals, variables, connectives -----------------------------------------------------------


def _constant(value: Value) -> Code:
    return lambda env: value


def _variable(tree: Node, context: Context) -> Code:
    name = str(tree.children[0])
    if name not in context.scope:
        raise Unsupported(f"the text speaks of {name}, which nothing binds")
    slot = context.scope[name]
    return lambda env: env[slot]


def _not(tree: Node, context: Context) -> Code:
    return _negated(compiled(tree.children[0], context))


def _negated(part: Code) -> Code:
    def code(env: Env) -> Value:
        value = part(env)
        return value if value is UNKNOWN else not value

    return code


def _settled(parts: Sequence[Code], settles: bool) -> Code:
    """The first part that is `settles` settles it; else one that is unknown leaves it open."""

    def code(env: Env) -> Value:
        result: Value = not settles
        for part in parts:
            value = part(env)
            if value is settles:
                return settles
            if value is UNKNOWN:
                result = UNKNOWN
        return result

    return code


def _junction(settles: bool) -> Callable[[Node, Context], Code]:
    return lambda tree, context: _settled([compiled(part, context) for part in tree.children], settles)


def _implies(tree: Node, context: Context) -> Code:
    left, right = (compiled(part, context) for part in tree.children)
    return _settled([_negated(left), right], True)


def _strict(parts: Sequence[Code], function: Callable[..., Value]) -> Code:
    def code(env: Env) -> Value:
        values = [part(env) for part in parts]
        return UNKNOWN if any(value is UNKNOWN for value in values) else function(*values)

    return code


def _operation(function: Callable[..., Value]) -> Callable[[Node, Context], Code]:
    return lambda tree, context: _strict([compiled(part, context) for part in tree.children], function)


def _if(tree: Node, context: Context) -> Code:
    condition, then, other = (compiled(part, context) for part in tree.children)

    def code(env: Env) -> Value:
        value = condition(env)
        return UNKNOWN if value is UNKNOWN else then(env) if value else other(env)

    return code


def _case(tree: Node, context: Context) -> Code:
    subject = compiled(tree.children[0], context)
    arms: dict[str, Code] = {}
    default: Code = _constant(UNKNOWN)
    for arm in reversed(children(tree)[1:]):
        *labels, result = arm.children
        body = compiled(result, context)
        if labels:
            arms.update((unquoted(str(label)), body) for label in labels)
        else:
            default = body

    def code(env: Env) -> Value:
        value = subject(env)
        if value is UNKNOWN:
            return UNKNOWN
        return (arms.get(value, default) if isinstance(value, str) else default)(env)

    return code


# ---- Numbers, lists, comparison -----------------------------------------------------------------


def _at(items: tuple[Element, ...], position: int) -> Value:
    return items[position] if 0 <= position < len(items) else UNKNOWN


def _index(tree: Node, context: Context) -> Code:
    if len(tree.children) != 2:
        raise Unsupported("the text takes a list at several positions")
    return _strict([compiled(part, context) for part in tree.children], _at)


def _vector(tree: Node, context: Context) -> Code:
    parts = [compiled(part, context) for part in children(tree)]
    return _strict(parts, lambda *values: values)


def _compare(tree: Node, context: Context) -> Code:
    parts = tree.children
    links = [_link(parts[i], str(parts[i + 1]), parts[i + 2], context) for i in range(0, len(parts) - 2, 2)]
    return links[0] if len(links) == 1 else _settled(links, False)


def _link(left: object, relation: str, right: object, context: Context) -> Code:
    if relation not in _RELATIONS:
        member = _membership(left, right, context)
        return member if relation == "in" else _negated(member)
    parts = [compiled(left, context), compiled(right, context)]
    if relation in ("=", "!=") and any(sort(part, context).startswith("set") for part in (left, right)):
        same = _strict(parts, lambda one, other: frozenset(one) == frozenset(other))
        return same if relation == "=" else _negated(same)
    return _strict(parts, _RELATIONS[relation])


_RELATIONS: Mapping[str, Callable[..., bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def _membership(left: object, right: object, context: Context) -> Code:
    element = compiled(left, context)
    match right:
        case Tree(data="call", children=[name, *arguments]) if context.function(str(name)).kind == "fact":
            find = context.tables.find(str(name))
            if find is None:
                raise Unsupported(f"this rechecker does not know the fact {name}")
            key, holds = _key(arguments, context), context.tables.holds(str(name), find)

            def looked_up(env: Env) -> Value:
                place, value = key(env), element(env)
                return UNKNOWN if isinstance(place, Open) or isinstance(value, Open) else holds(place, value)

            return looked_up
        case Tree(data="vector") if all(part.data in ("text", "int") for part in children(right)):
            listed = compiled(right, context)([])
            members = frozenset(listed) if isinstance(listed, tuple) else frozenset()
            return _strict([element], members.__contains__)
    return _strict([element, compiled(right, context)], lambda value, members: value in members)


def _comprehension(tree: Node, context: Context) -> Code:
    image, name, bound, guard = tree.children
    limit = compiled(bound, context)
    slot, inner = context.bound(str(name), "Int")
    made = compiled(image, inner)
    test = compiled(guard, inner) if guard is not None else _constant(True)

    def code(env: Env) -> Value:
        end = limit(env)
        if not isinstance(end, int):
            return UNKNOWN
        entries: list[Element] = []
        for position in range(end):
            env[slot] = position
            allowed = test(env)
            value = made(env) if allowed is True else UNKNOWN
            if allowed is not False:
                if isinstance(value, (tuple, Open)):
                    return UNKNOWN
                entries.append(value)
        return tuple(entries)

    return code


# ---- Quantifiers --------------------------------------------------------------------------------

Members = Callable[[Env], "Sequence[Element] | None"]


def _members(domain: object, context: Context) -> tuple[Members, str]:
    """The members of a domain, each once, None where it is unknown; and their sort."""
    code = compiled(domain, context)
    whole = sort(domain, context)

    def members(env: Env) -> Sequence[Element] | None:
        value = code(env)
        if not isinstance(value, tuple):
            return None
        return value if len(value) < 2 or whole.startswith("set ") else tuple(dict.fromkeys(value))

    return members, whole.partition(" ")[2] or "Int"


def _quantified(settles: bool) -> Callable[[Node, Context], Code]:
    def form(tree: Node, context: Context) -> Code:
        binders, body = tree.children
        return _nested(children(binders) if isinstance(binders, Tree) else [], body, context, settles)

    return form


def _nested(binders: Sequence[Node], body: object, context: Context, settles: bool) -> Code:
    if not binders:
        return compiled(body, context)
    name, domain = binders[0].children
    members, element = _members(domain, context)
    slot, inner = context.bound(str(name), element)
    rest = _nested(binders[1:], body, inner, settles)

    def code(env: Env) -> Value:
        values = members(env)
        if values is None:
            return UNKNOWN
        result: Value = not settles
        for member in values:
            env[slot] = member
            value = rest(env)
            if value is settles:
                return settles
            if value is UNKNOWN:
                result = UNKNOWN
        return result

    return code


def _assignments(binders: Node, context: Context) -> tuple[Callable[[Env], Iterator[bool]], Context]:
    """Goes through the assignments to the variables; yields False where a domain is unknown."""
    loops: list[tuple[int, Members]] = []
    for binder in children(binders):
        name, domain = binder.children
        members, element = _members(domain, context)
        slot, context = context.bound(str(name), element)
        loops.append((slot, members))

    def each(env: Env, depth: int = 0) -> Iterator[bool]:
        if depth == len(loops):
            yield True
            return
        slot, members = loops[depth]
        values = members(env)
        if values is None:
            yield False
            return
        for member in values:
            env[slot] = member
            yield from each(env, depth + 1)

    return each, context


def _unique(tree: Node, context: Context) -> Code:
    """Exactly one assignment satisfies the body."""
    binders, body = children(tree)
    each, inner = _assignments(binders, context)
    test = compiled(body, inner)

    def code(env: Env) -> Value:
        count, unknown = 0, False
        for known in each(env):
            value = test(env) if known else UNKNOWN
            unknown = unknown or value is UNKNOWN
            count += value is True
            if count > 1:
                return False
        return UNKNOWN if unknown else count == 1

    return code


def _set(tree: Node, context: Context) -> Code:
    image, binders, guard = tree.children
    if not isinstance(binders, Tree):
        raise Unsupported("a set in the text has no binders")
    each, inner = _assignments(binders, context)
    made = compiled(image, inner)
    test = compiled(guard, inner) if guard is not None else _constant(True)

    def code(env: Env) -> Value:
        members: dict[Element, None] = {}
        for known in each(env):
            allowed = test(env) if known else UNKNOWN
            value = made(env) if allowed is True else UNKNOWN
            if allowed is not False:
                if isinstance(value, (tuple, Open)):
                    return UNKNOWN
                members[value] = None
        return tuple(members)

    return code


# ---- Calls --------------------------------------------------------------------------------------


def _key(arguments: Sequence[object], context: Context) -> Callable[[Env], Value]:
    parts = [compiled(argument, context) for argument in arguments if argument is not None]
    return parts[0] if len(parts) == 1 else _strict(parts, lambda *values: values)


def _call(tree: Node, context: Context) -> Code:
    name, *arguments = tree.children
    if name == "len":
        return _strict([compiled(arguments[0], context)], len)
    declared = context.function(str(name))
    atom = context.atoms(declared.name) if declared.kind == "inductive" else None
    if declared.kind != "fact" and atom is None:
        return _expanded(declared, arguments, context)
    key = _key(arguments, context)
    if atom is not None:
        return _strict([key], atom)
    find = context.tables.find(declared.name)
    if find is None:
        raise Unsupported(f"this rechecker does not know the fact {declared.name}")
    silent: Value = () if sort_of(declared.result).startswith("set ") else UNKNOWN

    def code(env: Env) -> Value:
        place = key(env)
        if place is UNKNOWN:
            return UNKNOWN
        value = find(place)
        return silent if value is None else value

    return code


def _expanded(declared: Declaration, arguments: Sequence[object], context: Context) -> Code:
    """The body of a definition, its parameters standing for the arguments."""
    if declared.name in context.within:
        raise Unsupported(f"the definition of {declared.name} comes back to itself")
    inner = replace(context, scope={}, within=(*context.within, declared.name))
    copies: list[tuple[int, Code]] = []
    given = [argument for argument in arguments if argument is not None]
    for (name, sort_), argument in zip(declared.parameters, given, strict=True):
        if isinstance(argument, Tree) and argument.data == "var":
            slot = context.scope.get(str(argument.children[0]))
            if slot is None:
                raise Unsupported(f"the text speaks of {argument.children[0]}, which nothing binds")
            inner = replace(inner, scope={**inner.scope, name: slot})
        else:
            code = compiled(argument, context)
            slot, inner = inner.bound(name, sort_)
            copies.append((slot, code))
    body = compiled(declared.body, inner)
    if not copies:
        return body

    def run(env: Env) -> Value:
        for slot, code in copies:
            env[slot] = code(env)
        return body(env)

    return run


_FORMS: Mapping[str, Callable[[Node, Context], Code]] = {
    "true": lambda tree, context: _constant(True),
    "false": lambda tree, context: _constant(False),
    "int": lambda tree, context: _constant(int(str(tree.children[0]))),
    "text": lambda tree, context: _constant(unquoted(str(tree.children[0]))),
    "var": _variable,
    "not": _not,
    "and": _junction(False),
    "or": _junction(True),
    "implies": _implies,
    "iff": _operation(lambda left, right: left == right),
    "ite": _if,
    "case": _case,
    "compare": _compare,
    "add": _operation(lambda left, right: left + right),
    "sub": _operation(lambda left, right: left - right),
    "mul": _operation(lambda left, right: left * right),
    "div": _operation(lambda left, right: left // right if right else UNKNOWN),
    "mod": _operation(lambda left, right: left % right if right else UNKNOWN),
    "neg": _operation(lambda value: -value),
    "concat": _operation(lambda left, right: left + right),
    "index": _index,
    "vector": _vector,
    "comprehension": _comprehension,
    "set_comprehension": _set,
    "forall": _quantified(False),
    "exists": _quantified(True),
    "unique": _unique,
    "call": _call,
}
"""The meaning of each form of expression."""


# ---- Whole formulas -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Instance:
    """One place: what the variables of the outermost universal quantifiers stand for, in order, each with its sort.

    fails: False where the model leaves open whether the formula holds there.
    """

    elements: tuple[tuple[str, Element], ...] = ()
    fails: bool = True


def outermost(formula: Node | None) -> tuple[list[tuple[str, object]], object]:
    """The names and domains that the outermost universal quantifiers bind, in order, and what stands below them."""
    bound: list[tuple[str, object]] = []
    rest: object = formula
    while isinstance(rest, Tree) and rest.data == "forall":
        binders, rest = rest.children
        bound += [(str(b.children[0]), b.children[1]) for b in children(binders)] if isinstance(binders, Tree) else []
    return bound, rest


def instances(formula: Node | None, context: Context) -> Iterator[Instance]:
    """The places at which a formula is false or unknown, in order."""
    bound, rest = outermost(formula)
    loops: list[tuple[int, str, Members]] = []
    for name, domain in bound:
        members, element = _members(domain, context)
        slot, context = context.bound(name, element)
        loops.append((slot, element, members))
    body = compiled(rest, context)
    env: Env = [False] * len(context.slots)

    def elements(depth: int) -> tuple[tuple[str, Element], ...]:
        values = ((element, env[slot]) for slot, element, _ in loops[:depth])
        return tuple((element, value) for element, value in values if isinstance(value, int | str))

    def below(depth: int) -> Iterator[Instance]:
        if depth == len(loops):
            value = body(env)
            if value is not True:
                yield Instance(elements(depth), fails=value is False)
            return
        slot, _, members = loops[depth]
        values = members(env)
        if values is None:
            yield Instance(elements(depth), fails=False)
            return
        for member in values:
            env[slot] = member
            yield from below(depth + 1)

    return below(0)
