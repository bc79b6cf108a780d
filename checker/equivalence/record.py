"""What is proved of the rewrites of the text: read from the package, and for the very texts alone that it is proved of.

`proved.tsv` beside this module is written by `sonnx prove --transforms --record`. A row holds for a rule whose digest
is still the one that it was proved with; the digest is that of the rule, of the definitions of all operators that it
applies, and of what these use. `texts.tsv` says of each row which text that is, as it stands in the files: so a second
party who has another parser than ours, or none, can tell that the proof is one of the text that he reads.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sonnx.spec.elaborate.core import CoreOperator, CoreRewrite
from sonnx.spec.elaborate.coverage import used_definitions
from sonnx.spec.language.printer import print_declaration
from sonnx.spec.language.syntax import Port
from sonnx.spec.library import specification

from .matching.patterns import meaning
from .matching.searching import Match
from .matching.views import View
from .texts import rests_on

if TYPE_CHECKING:
    from .proving.rules import Verdict

PATH = Path(__file__).with_name("proved.tsv")
COLUMNS = ("rule", "claim", "verdict", "strength", "axes", "lists", "types", "cases", "seconds", "digest", "cut")
TEXTS = ("rule", "digest", "text")
STRENGTHS = ("exact", "allowed", "reals")
"""From the strongest claim to the weakest."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What is shown of a rule. strength: the strongest claim that is. axes: for tensors of at most so many axes, None
    for any number of them; lists: the greatest length of a list that was tried, None for any length. digest: of the
    text that it was proved of, where nobody has looked yet whether that is the text as it is now. cut: of which lists
    longer ones were not tried: sizes of ports by name, attributes in words; nothing where that is not on record.
    """

    rule: str
    strength: str
    axes: int | None
    lists: int | None
    digest: str = ""
    cut: frozenset[str] = frozenset()

    @property
    def holds(self) -> bool:
        """The proof is one of the rule of the specification as it is now."""
        return self.digest in ("", _digest_of(self.rule))

    def covers(self, view: View, match: Match) -> bool:
        """The proof is for as many axes, and for lists as long, as a match has."""
        ports = [view.content(t).shape for t in match.ports.values() if t is not None]
        lists: list[object] = [len(it) for it in match.attributes.values() if isinstance(it, tuple)]
        for port in match.pattern.rule.left.inputs:
            t = match.ports.get(port.name)
            if t is not None and self._counts(port):
                lists += view.content(t).shape or (None,)
        if self.axes is not None and any(shape is None or len(shape) > self.axes for shape in ports):
            return False
        return self.lists is None or all(isinstance(it, int) and it <= self.lists for it in lists)

    def _counts(self, port: Port) -> bool:
        """Of the list that a port gives longer ones were not tried, for all that is on record."""
        sizes = {it[0] for it in port.shape or () if not isinstance(it, int) and not it[1]}
        return bool(sizes & self.cut if self.cut else len(port.shape or ()) == len(sizes) == 1)


def proofs() -> Mapping[str, Proof]:
    """The proofs on record of the rules of the specification as it is now."""
    return {name: replace(proof, digest="") for name, proof in recorded().items() if proof.holds}


def recorded() -> Mapping[str, Proof]:
    """The proofs on record, those of other texts included: who uses one asks whether it `holds`."""
    return {
        row["rule"]: Proof(row["rule"], row["strength"], _most(row["axes"]), _most(row["lists"]), row["digest"], cut)
        for row in rows()
        if row["verdict"] == "proved"
        for cut in (frozenset(filter(None, row["cut"].split(", "))),)
    }


def rows(path: Path = PATH) -> list[dict[str, str]]:
    """The rows of the record, of other texts included."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t", restval=""))


def seconds() -> dict[str, float]:
    """How long the verdicts of the rows took."""
    return {row["rule"]: float(row["seconds"]) for row in rows()}


def for_few_axes() -> frozenset[str]:
    """The rules with a proof on record for few axes alone: one for any number of them was looked for then."""
    return frozenset(it.rule for it in recorded().values() if it.axes is not None and it.holds)


def write(verdicts: Iterable[Verdict], listed: int, path: Path = PATH) -> None:
    """Writes rows for verdicts that show what their rules claim, in place of older rows of the same rules. Rows of
    rules that the text has no more go. listed: the greatest length of a list that is tried where proofs cut lists.
    """
    text = specification()
    known = {row["rule"]: row for row in rows(path) if row["rule"] in text.rules}
    for it in verdicts:
        known.pop(it.rule, None)
        if it.holds:
            known[it.rule] = {
                "rule": it.rule, "claim": it.claim, "verdict": it.verdict, "strength": it.strength or "-",
                "axes": "any" if it.every else str(it.most), "lists": str(listed) if it.cut else "any",
                "types": it.types or "-", "cases": str(it.instances), "seconds": f"{it.seconds:.1f}",
                "digest": digest(text.rules[it.rule]), "cut": ", ".join(it.cut),
            }  # fmt: skip
    written = (it for _, it in sorted(known.items()))
    lines = ["\t".join(COLUMNS), *("\t".join(it[key] for key in COLUMNS).rstrip("\t") for it in written)]
    path.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    write_texts(path)


def write_texts(path: Path = PATH) -> None:
    """Writes down beside the record of which texts its rows are."""
    present = [row for row in rows(path) if row["digest"] == _digest_of(row["rule"])]
    lines = ["\t".join(TEXTS), *(f"{row['rule']}\t{row['digest']}\t{rests_on(row['rule'])}" for row in present)]
    path.with_name("texts.tsv").write_text(HEAD_OF_TEXTS + "\n".join(lines) + "\n", encoding="utf-8")


HEAD = """\
# What is shown of the rewrites of part 7; written by `sonnx prove --transforms --record`, a row for each rule that is
# what it claims. axes: for tensors of at most so many axes, or of any number of them. lists: the greatest length of
# lists that was tried, where lists were cut. types: any, or one by one. cases: that were told apart. seconds: of the
# processor. digest: of all text that the row rests on. cut: of which lists longer ones were not tried: sizes of ports
# by name, attributes in words.
"""
HEAD_OF_TEXTS = """\
# Of which text each row of proved.tsv is, written with it. digest: that of the row. text: of the declarations as they
# stand in the files (CERTIFICATE.md, Two models).
"""


def _most(text: str) -> int | None:
    return None if text == "any" else int(text)


def _digest_of(name: str) -> str:
    rule = specification().rules.get(name)
    return "" if rule is None else digest(rule)


@cache
def digest(rule: CoreRewrite) -> str:
    """The digest of all text that a proof of a rule rests on, in hexadecimal digits."""
    text = specification()
    parts = [print_declaration(text.rewrites[rule.name])]
    seen: dict[CoreOperator, None] = {}
    waiting = [*_applied(rule.left), *_applied(rule.right)]
    while waiting:
        it = waiting.pop(0)
        if it not in seen:
            seen[it] = None
            waiting += _applied(it)
    for it in seen:
        parts += _text_of(it)
    for side in (rule.left, rule.right):
        names = sorted({core.name for s in side.statements for core in s.nodes() if core.head == "define"})
        parts += [_printed(text.functions[name]) for name in names]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@cache
def _text_of(operator: CoreOperator) -> tuple[str, ...]:
    """The text of a definition, and of the functions that it uses."""
    text = specification()
    written = text.written(operator)
    return print_declaration(written), *map(_printed, used_definitions(written, text.functions))


_printed = cache(print_declaration)


@cache
def _applied(operator: CoreOperator) -> list[CoreOperator]:
    return [meaning(core.name, int(core.value)) for core in operator.applications]
