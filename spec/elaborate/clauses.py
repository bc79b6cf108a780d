"""The clauses behind declarations: which belong where, what they may say, and the templates among them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..language.syntax import Clause, Expr, Span
from .infer import infer
from .scope import Ledger, Scope

ALLOWED: Mapping[str, frozenset[str]] = {
    "constraint": frozenset(
        {"source", "quote", "note", "violation", "suggest", "evidence", "obligation", "unwaivable"}
    ),
    "law": frozenset({"source", "quote", "note"}),
    "theorem": frozenset({"source", "quote", "note"}),
    "lemma": frozenset({"source", "quote", "note"}),
    "finding": frozenset({"source", "quote", "note"}),
    "situation": frozenset({"source", "quote", "note"}),
    "profile": frozenset({"source", "quote", "note", "collects", "includes"}),
    "rule": frozenset({"source", "quote", "note", "status", "variant"}),
    "operator": frozenset({"source", "quote", "note", "unused"}),
    "contract": frozenset({"source", "quote", "note"}),
    "rewrite": frozenset({"source", "quote", "note"}),
    "require": frozenset({"source", "quote", "note", "demanded"}),
    "restrict": frozenset({"source", "quote", "note", "demanded"}),
}
"""The clauses that a declaration may have. The evidence of a constraint is places, the status of a rule current, where
nothing else is written."""
NEEDED: Mapping[str, tuple[str, ...]] = {
    "constraint": ("violation", "suggest"),
    "law": (),
    "theorem": (),
    "lemma": (),
    "finding": (),
    "situation": (),
    "profile": ("source",),
    "rule": (),
    "operator": ("source",),
    "contract": ("source",),
    "rewrite": ("source",),
    "require": ("demanded",),
    "restrict": ("demanded",),
}
ONCE = frozenset({"violation", "suggest", "evidence", "obligation", "unwaivable", "status", "variant", "collects"})
STATUSES = ("current", "superseded", "TBC", "defective", "open", "reported", "advisory", "completion")
"""The words of a rule set for the standing of a rule. reported: judged and shown, and counted in strict mode only."""

COLLECTED = ("require", "restrict")
"""The statements of operators that a rule set may take in as rules."""


def check_clauses(what: str, name: str, clauses: tuple[Clause, ...], span: Span, ledger: Ledger) -> None:
    """The clauses of a declaration or of a rule of a profile; `what` is one of `ALLOWED`."""
    seen: dict[str, Span] = {}
    for item in clauses:
        if item.key not in ALLOWED[what]:
            allowed = ", ".join(sorted(ALLOWED[what]))
            ledger.report("clause/misplaced", item.span, what=what, key=item.key, allowed=allowed)
        elif item.key in seen and item.key in ONCE:
            ledger.report("clause/repeated", item.span, seen[item.key], key=item.key)
        seen.setdefault(item.key, item.span)
        if item.key == "status" and item.value not in STATUSES:
            ledger.report("profile/status", item.span, value=item.value, allowed=", ".join(STATUSES))
        if item.key == "collects" and item.value not in COLLECTED:
            ledger.report("profile/collects", item.span, value=item.value, allowed=", ".join(COLLECTED))
        if item.key == "demanded" and not re.fullmatch(r"ONNX|SONNX([/-].+)?", item.value):
            ledger.report("clause/demanded", item.span, value=item.value)
    for key in NEEDED[what]:
        if key not in seen:
            ledger.report("clause/missing", span, what=what, name=name, key=key)


def check_template(item: Clause, scope: Scope, ledger: Ledger) -> None:
    """The expressions of a template; they may be of any sort."""
    for part in item.parts:
        if isinstance(part, Expr):
            infer(part, scope, ledger)
