"""The text as the kernel reads it: copied once, from plain objects alone; what is hashed is what is proved from.

A text is handed over as objects of Python, which may be changed, or made so that they say one thing now and another
later. So every declaration is copied before anything is read off it. Only the classes of the syntax, dictionaries,
tuples, strings and numbers are copied, no subclass of them: these have no behaviour of their own, so nobody who reads
the text reads another one than the kernel did.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import cast

from sonnx.spec.elaborate.declarations import elaborate
from sonnx.spec.language import syntax
from sonnx.spec.library import Declared, Functions, Meanings, Specification


class Forged(Exception):  # noqa: N818 - named for what was found
    """Something was offered that is no theorem of the kernel, no text, or not the text that it is said to be."""


PLAIN = frozenset({str, int, bool, type(None)})
"""The classes of what has no parts."""
MAPPINGS = frozenset({dict, Declared, Functions})
"""The classes of mappings that are read; each gives for a name the same declaration whenever it is asked."""
FIELDS: Mapping[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind) if field.name != "span")
    for kind in (
        syntax.Accuracy, syntax.Arm, syntax.Binder, syntax.Clause, syntax.Constraint, syntax.Expr,
        syntax.FunctionDeclaration, syntax.Keyword, syntax.Parameter, syntax.Premise, syntax.Property, syntax.Range,
        syntax.Sort, syntax.SortDeclaration, syntax.Transition,
    )
}  # fmt: skip
"""The classes of what has parts, with the names of the parts; where something stands is copied and not hashed."""
NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*'*")
"""A name of the text; those that formulas make themselves have a dot in them."""
RULE = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
"""The name of a rule of execution, which is none of a formula."""
SPANLESS = frozenset({syntax.Accuracy, syntax.Sort})
LETTERS: Mapping[type, str] = {
    syntax.Expr: "E", syntax.Binder: "B", syntax.Range: "R", syntax.Arm: "A", syntax.Keyword: "K",
    str: "s", int: "i", type(None): "n",
}  # fmt: skip
SHAPES: Mapping[str, str] = {
    **dict.fromkeys(("true", "false"), ""),
    **dict.fromkeys(("var", "text", "float", "given", "every"), "s"),
    "int": "i",
    **dict.fromkeys(("and", "or"), "EE+"),
    **dict.fromkeys(("not", "neg"), "E"),
    **dict.fromkeys(("implies", "iff", "add", "sub", "concat", "mul", "quotient", "div", "mod"), "EE"),
    "compare": "E(sE)+",
    **dict.fromkeys(("forall", "exists", "unique"), "B+E"),
    "ite": "EEE", "case": "EA+", "fold": "sR+[En][En]E", "index": "E+", "call": "sE*", "apply": "si[En]*K*",
    "step": "s[En](EE)+", "vector": "E*", "comprehension": "EsE[En]", "collect": "EB[En]",
    "set_comprehension": "EB+[En]", "map_comprehension": "EEB+", "pair": "EE",
}  # fmt: skip
"""For each head what its arguments are. The grammar makes no others, so nothing says what others would mean."""
RELATIONS = frozenset({"=", "!=", "<", "<=", ">", ">=", "in", "not in"})
BODIES: Mapping[object, bool] = {
    **dict.fromkeys(("fact", "fun", "record", "field"), False), "define": True, "inductive": True,
}  # fmt: skip
"""A function of this kind has a body, or has none."""
SECTIONS = ("sorts", "functions", "constraints", "transitions", "properties")
"""The parts of a specification that proofs read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of the text that nobody else has, the definitions that are any predicate, and the digest of both."""

    text: Specification
    opaque: frozenset[str]
    digest: str


def taken(text: Specification, opaque: frozenset[str]) -> Snapshot:
    """The snapshot. Raises Forged for what is no text."""
    if type(text) is not Specification:
        raise Forged(f"{type(text).__name__} is no specification")
    if type(opaque) is not frozenset or any(type(name) is not str for name in opaque):
        raise Forged("the definitions that are any predicate are a frozenset of strings")
    said = [f"opaque {sorted(opaque)}"]
    sections: dict[str, dict[str, object]] = {}
    for section in SECTIONS:
        said.append(section)
        sections[section] = _section(section, getattr(text, section), said)
    digest = hashlib.sha256("\n".join(said).encode()).hexdigest()
    copied = Specification(
        {}, {},
        cast("dict[str, syntax.SortDeclaration]", sections["sorts"]),
        cast("dict[str, syntax.FunctionDeclaration]", sections["functions"]),
        cast("dict[str, syntax.Constraint]", sections["constraints"]),
        cast("dict[str, syntax.Transition]", sections["transitions"]),
        cast("dict[str, syntax.Property]", sections["properties"]),
        {}, {}, Meanings({}),
    )  # fmt: skip
    return Snapshot(copied, opaque, digest)


def _section(section: str, part: object, said: list[str]) -> dict[str, object]:
    """The declarations of a section by name; each has the name under which it stands."""
    if type(part) not in MAPPINGS:
        raise Forged(f"the {section} are a {type(part).__name__}, which may say one thing now and another later")
    made = {}
    for name in cast("Mapping[str, object]", part):
        copied = _copied(cast("Mapping[str, object]", part)[name], said)
        if type(name) is not str or getattr(copied, "name", None) != name:
            raise Forged(f"the {section} have a declaration of another name under {name!r}")
        made[name] = copied
    return made


def _copied(part: object, said: list[str]) -> object:
    """A copy, told in words so that different things are told differently."""
    kind = type(part)
    if kind in PLAIN:
        said.append(repr(part))
        return part
    if kind is tuple:
        items = cast("tuple[object, ...]", part)
        said.append(f"({len(items)}")
        return tuple([_copied(item, said) for item in items])
    if kind not in FIELDS:
        raise Forged(f"a {kind.__name__} is no part of a text")
    said.append(kind.__name__)
    values = [_copied(getattr(part, name), said) for name in FIELDS[kind]]
    if "name" in FIELDS[kind]:
        _check_name(kind, values[FIELDS[kind].index("name")])
    if kind in SPANLESS:
        return kind(*values)
    if isinstance(part, syntax.Expr):
        _check_shape(str(values[0]), cast("tuple[object, ...]", values[1]))
    if isinstance(part, syntax.FunctionDeclaration) and BODIES.get(part.kind) is not (part.body is not None):
        raise Forged(f"{part.name} is no function of a text: a definition and an inductive predicate have a body")
    parts: dict[str, object] = dict(zip(FIELDS[kind], values, strict=True))
    parts["span"] = _span(getattr(part, "span", syntax.NOWHERE))
    return cast("Callable[..., object]", kind)(**parts)


def _check_name(kind: type, name: object) -> None:
    """A name is one that the grammar knows, so that it is no name that a formula makes and no text of SMT-LIB."""
    pattern = RULE if kind is syntax.Transition else NAMED
    if not (kind is syntax.Premise and name is None) and not (type(name) is str and pattern.fullmatch(name)):
        raise Forged(f"{name!r} is no name")


def _check_shape(head: str, args: tuple[object, ...]) -> None:
    """An expression is one that the grammar makes: what another one means nobody has said."""
    letters = "".join(LETTERS.get(type(arg), "?") for arg in args)
    related = head != "compare" or RELATIONS.issuperset(args[1::2])
    if head not in SHAPES or not re.fullmatch(SHAPES[head], letters) or not related:
        raise Forged(f"no text has an expression {head!r} with the arguments {letters!r}")


def _span(written: object) -> syntax.Span:
    if type(written) is not syntax.Span:
        return syntax.NOWHERE
    parts = (written.file, written.line, written.column, written.end_line, written.end_column)
    return written if all(type(part) in (str, int) for part in parts) else syntax.NOWHERE


def mistake(snapshot: Snapshot) -> str:
    """The first mistake that elaboration finds, "" without one: names, sorts, what inductive predicates may say."""
    text = snapshot.text
    declared: Iterable[syntax.Declaration] = (
        *text.sorts.values(),
        *text.functions.values(),
        *text.constraints.values(),
        *text.transitions.values(),
        *text.properties.values(),
    )
    errors = elaborate([syntax.File("the text", tuple(declared))]).errors
    return str(errors[0]) if errors else ""
