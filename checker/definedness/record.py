"""The table `definedness.tsv`: what the prover shows of each definition, and what that is worth now.

A row counts as long as the definition says what it said when the prover ran: its digest covers
the meaning, with the definitions and functions that it uses, and no sentence, source, quote or note.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.elaborate.coverage import expressions_of, inside, local_functions
from sonnx.spec.language.syntax import FunctionDeclaration, Operator, Statement
from sonnx.spec.library import specification

if TYPE_CHECKING:
    from .proving import Judgement

TABLE = Path(__file__).parent / "definedness.tsv"
COMMAND = "sonnx definedness --record checker/definedness/definedness.tsv"
"""The command that writes the table; OP names those operators of which the rows are written anew."""
VERDICTS = ("proved", "tested", "listed")
COLUMNS = ("operator", "first", "last", "digest", "verdict", "ranks", "instances", "left")
HEAD = f"""\
# How far each operator definition is defined wherever its requirements hold: every index in bounds, no divisor zero, no
# size negative, no window empty. Counted by `sonnx spec check`, written by
#   {COMMAND} [OP]...
#
# ranks, for which numbers of axes and lengths of lists the verdict is shown:
#   every   for all of them: they are open in the proof, as sizes and attributes are. What it takes from induction on
#           lengths are the lemmas of semantics/operators/symbolic/lemmas.py, which induction.py proves. `met at 1-2
#           axes of d` in the last column: what is required leaves no other numbers of axes, none of 5 or more
#   0-4     for 0 to 4 axes, one after the other (fewer where `left` says so), and for short lists; nothing beyond
# verdict:
#   proved  every obligation is proved at each of these numbers of axes
#   listed  likewise, but for the obligations in the last column: what a primitive demands of its arguments is left to
#           the primitive, which is stuck where it does not hold; the reasons stand in
#           tests/checker/definedness/expect/definedness.txt
#   tested  the solver takes too long for the numbers of axes in the last column: every obligation is proved at smaller
#           ones, if any, and small concrete shapes are tested (tests/semantics/operators/symbolic/test_symbolic.py)
# Where ranks says 0-4, of inputs without a shape 0 to 2 axes are tried, of lists of tensors up to four tensors; and
# where there are more than 125 combinations, so many that any three inputs have all that the requirements let them have
# together.
# digest: of the meaning with all that it uses. instances: at how many combinations of numbers of axes up to 4 all
# requirements can hold together, 0 where the solver takes too long for one. left: what is left out, as said above;
# `short LIST`: of a list whose length data or attributes decide the lengths up to 3 are tried, or the least that are
# possible.
"""


@dataclass(frozen=True, slots=True)
class Record:
    """A row of the table."""

    operator: str
    first: int
    last: int
    digest: str
    verdict: str
    ranks: str
    instances: int
    left: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`Conv-11`."""
        return f"{self.operator}-{self.first}"


def read_records(text: str) -> tuple[Record, ...]:
    """The rows of a table. Raises ValueError for a line that is none."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    if not lines or lines[0] != "\t".join(COLUMNS):
        raise ValueError("the table of definedness has other columns")
    return tuple(map(_record, lines[1:]))


def _record(line: str) -> Record:
    operator, first, last, digest_, verdict, ranks, instances, left = line.split("\t")
    kept = () if left == "-" else tuple(left.split("; "))
    return Record(operator, int(first), int(last), digest_, verdict, ranks, int(instances), kept)


def write_records(records: Iterable[Record]) -> str:
    """The table of these rows, ordered by operator and version."""
    rows = [COLUMNS]
    for r in sorted(records, key=lambda record: (record.operator, record.first)):
        left = "; ".join(r.left) or "-"
        rows.append((r.operator, str(r.first), str(r.last), r.digest, r.verdict, r.ranks, str(r.instances), left))
    return HEAD + "".join("\t".join(row) + "\n" for row in rows)


# ---- Rows from what the prover shows ----------------------------------------------------------

LEFT = frozenset({"contract"})
"""The kinds of obligations that are left to the primitive concerned, which is stuck where they fail."""
EVERY, FEW = "every", "0-4"
"""The numbers of axes for which a verdict is shown."""


def rows_of(text: str) -> dict[tuple[str, int], Record]:
    """The rows of a table by operator and first version, but those of definitions that there are no more."""
    current = {(operator.name, operator.first) for operator in by_equations(specification().operators)}
    return {(r.operator, r.first): r for r in read_records(text) if (r.operator, r.first) in current}


def record(operator: CoreOperator, judgement: Judgement) -> Record | None:
    """The row of a judgement; None where it is no better than refuted or not proved."""
    ends = judgement.paths or judgement.most == 0
    if judgement.reason or not ends or any(finding.kind not in LEFT for finding in judgement.findings):
        return None
    known = specification()
    every = judgement.bound == ""
    few = [] if judgement.most is None or every else [f"axes > {judgement.most}"]
    listed = sorted({f"{finding.kind} {finding.about}" for finding in judgement.findings})
    met = [f"met at {words}" for words in judgement.met] if every else []
    short = [] if every else sorted({f"short {_list(words)}" for words in judgement.cut})
    return Record(
        operator.name,
        operator.first,
        operator.last,
        digest(known.written(operator), known.operators, known.functions),
        "tested" if few else "listed" if listed else "proved",
        EVERY if every else FEW,
        judgement.paths,
        (*few, *listed, *short, *met),
    )


def _list(words: str) -> str:
    """The name of the list whose length a term is: of `len.axes`, or of `axes.0`, the number of its elements."""
    match = re.search(r"\blen\.(\w+)|\b(\w+)\.0\b", words)
    return words if match is None else match[1] or match[2]


# ---- What the verdicts are worth now ----------------------------------------------------------

Operators = Mapping[str, tuple[Operator, ...]]
Functions = Mapping[str, FunctionDeclaration]
STALE, UNKNOWN = "stale", "not recorded"
"""Instead of a verdict: the definition has changed since; there is no row."""


def recorded(operators: Operators, functions: Functions) -> tuple[str, dict[str, dict[int, str]]]:
    """The counts as a line, and the verdicts, for `sonnx spec check`."""
    records = read_records(TABLE.read_text("utf-8"))
    judged = verdicts(records, operators, functions)
    every = sum(r.ranks == EVERY and judged.get(r.operator, {}).get(r.first) == r.verdict for r in records)
    return f"{definedness_line(judged)} ({every} for every rank)", judged


def recorded_of(
    names: Iterable[str], operators: Operators, functions: Functions, *, every: bool = False
) -> dict[str, dict[int, str]]:
    """The verdicts about the operators of these names. every: those alone that are shown for every rank."""
    asked = {name: operators[name] for name in names if name in operators}
    records = (it for it in read_records(TABLE.read_text("utf-8")) if it.ranks == EVERY or not every)
    return verdicts(list(records), operators, functions, asked)


def verdicts(
    records: Iterable[Record], operators: Operators, functions: Functions, asked: Operators | None = None
) -> dict[str, dict[int, str]]:
    """For each operator, or each that is asked for, and each of its definitions by equations by its first version, the
    verdict that holds now.
    """
    rows = {(record.operator, record.first): record for record in records}
    by_name: dict[str, dict[int, str]] = {}
    for operator in by_equations(operators if asked is None else asked):
        row = rows.get((operator.name, operator.first))
        current = row is not None and row.digest == digest(operator, operators, functions)
        verdict = UNKNOWN if row is None else row.verdict if current else STALE
        by_name.setdefault(operator.name, {})[operator.first] = verdict
    return by_name


def by_equations(operators: Operators) -> Iterator[Operator]:
    """The definitions that are no rules of the machine."""
    for meanings in operators.values():
        yield from (o for o in meanings if all(statement.kind != "rule" for statement in o.statements))


def definedness_line(verdicts_by_name: Mapping[str, Mapping[int, str]]) -> str:
    """The counts: of every verdict, and of what has none where there is any."""
    every = Counter(verdict for versions in verdicts_by_name.values() for verdict in versions.values())
    words = [*VERDICTS, *(word for word in (STALE, UNKNOWN) if word in every)]
    return f"definedness of {every.total()} definitions: " + ", ".join(f"{every[word]} {word}" for word in words)


# ---- The digest of a meaning ------------------------------------------------------------------

PROSE = frozenset({"span", "doc", "clauses", "accuracy", "id", "like"})
"""The fields that say nothing of the definedness of a meaning."""


def digest(operator: Operator, operators: Operators, functions: Functions) -> str:
    """The digest of what a definition says, with the functions and the other definitions that it uses.

    Sentences and clauses are left out, and what a rule set forbids (`restrict`), which no execution evaluates.
    """
    used: dict[str, object] = {}
    waiting: list[Operator | FunctionDeclaration] = [operator]
    while waiting:
        current = waiting.pop()
        name = f"{current.name}-{current.first}" if isinstance(current, Operator) else f"{current.name}()"
        if name not in used:
            used[name] = _meaning(current)
            waiting += _named(current, operators, functions)
    return hashlib.sha256(repr(sorted(used.items())).encode()).hexdigest()[:16]


def _named(
    current: Operator | FunctionDeclaration, operators: Operators, functions: Functions
) -> Iterator[Operator | FunctionDeclaration]:
    """The functions and definitions that one of them mentions."""
    local = local_functions(current)
    if isinstance(current, Operator):
        written = [expr for s in current.statements if s.kind != "restrict" for expr in expressions_of(s)]
    else:
        written = [] if current.body is None else [current.body]
    for part in (part for expr in written for part in inside(expr)):
        called = str(part.args[0]) if part.head == "call" else ""
        if called in functions and called not in local:
            yield functions[called]
        elif part.head == "apply":
            name, version = str(part.args[0]), int(str(part.args[1]))
            yield from (o for o in operators.get(name, ()) if o.first <= version <= o.last)


def _meaning(value: object) -> object:
    """The parts of a value of the syntax that are no prose."""
    if isinstance(value, tuple):
        return [_meaning(item) for item in value if not (isinstance(item, Statement) and item.kind == "restrict")]
    if not is_dataclass(value):
        return value
    parts = ((f, getattr(value, f.name)) for f in fields(value) if f.name not in PROSE)
    said = [[f.name, _meaning(part)] for f, part in parts if part != f.default]  # so that the language may grow
    return [type(value).__name__, *said]
