"""The recorded proofs of rewrites as the rechecker reads them: of a rule, for the very text that it was proved of.

`proved.tsv` and `texts.tsv` in the folder of the package `equivalence` are written by `sonnx prove --transforms
--record`. The first says what is proved of a rule, and has the digest of the proved text as the prover knows it; the
second says which text, as it stands in the file, that was.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sonnx.semantics.errors import Unsupported

from ..operators.text import Library, Port
from .rules import STRENGTHS, Rewrite

FOLDER = Path(__file__).parents[2] / "equivalence"


@dataclass(frozen=True, slots=True)
class Proof:
    """What is on record. axes, lists: up to how many the proof goes, None for any number. cut: the names of the sizes
    of lists of which longer ones were not tried; nothing where that is not on record."""

    digest: str
    strength: str
    axes: int | None
    lists: int | None
    cut: frozenset[str]

    def counts(self, port: Port) -> bool:
        """Of the list that a port gives longer ones were not tried, for all that is on record."""
        sizes = {it[0] for it in port.shape or () if not isinstance(it, int) and not it[1]}
        return bool(sizes & self.cut if self.cut else len(port.shape or ()) == len(sizes) == 1)


@cache
def rows_of(name: str) -> Mapping[str, Mapping[str, str]]:
    """The rows of a file of the record, by rule. Raises Unsupported."""
    try:
        with (FOLDER / name).open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t", restval="")
            return {row["rule"]: row for row in rows}
    except (OSError, KeyError) as error:
        raise Unsupported(f"the record of proofs {name} cannot be read: {type(error).__name__}") from None


def proof_of(rule: Rewrite, library: Library) -> Proof | str:
    """The proof of a rule on record, or why there is none for the text that is installed."""
    row, text = rows_of("proved.tsv").get(rule.name), rows_of("texts.tsv").get(rule.name)
    if row is None or text is None:
        return f"no proof of {rule.name} is on record"
    if text["digest"] != row["digest"] or text["text"] != library.rests_on(rule.name):
        return f"the proof of {rule.name} on record is one of another text"
    if row["verdict"] != "proved" or row["claim"] != rule.claim or row["strength"] not in STRENGTHS:
        return f"{rule.name} is on record as {row['verdict']}, with the claim {row['claim']}"
    if STRENGTHS.index(row["strength"]) > STRENGTHS.index(rule.claim) or row["types"] not in ("any", "one by one"):
        return f"{rule.name} is proved as {row['strength']} only"
    cut = frozenset(filter(None, row["cut"].split(", ")))
    return Proof(row["digest"], row["strength"], _most(row["axes"]), _most(row["lists"]), cut)


def _most(text: str) -> int | None:
    return None if text == "any" else int(text)
