"""What the prover finds, as rows of the table `spec/definedness.tsv`, which `sonnx spec check` counts."""

from __future__ import annotations

import re

from sonnx.spec.definedness import Record, by_equations, digest, read_records
from sonnx.spec.language.syntax import Operator
from sonnx.spec.library import specification

from .proving import Judgement

LEFT = frozenset({"contract"})
"""The kinds of obligations that are left to the primitive concerned, which is stuck where they fail."""

Rows = dict[tuple[str, int], Record]


def rows_of(text: str) -> Rows:
    """The rows of a table by operator and first version, but those of definitions that there are no more."""
    current = {(operator.name, operator.first) for operator in by_equations(specification().operators)}
    return {(r.operator, r.first): r for r in read_records(text) if (r.operator, r.first) in current}


def record(operator: Operator, judgement: Judgement) -> Record | None:
    """The row of a judgement; None where it is no better than refuted or not proved."""
    ends = judgement.paths or judgement.most == 0
    if judgement.reason or not ends or any(finding.kind not in LEFT for finding in judgement.findings):
        return None
    known = specification()
    few = [] if judgement.most is None else [f"axes > {judgement.most}"]
    listed = sorted({f"{finding.kind} {finding.about}" for finding in judgement.findings})
    short = sorted({f"short {_list(words)}" for words in judgement.cut})
    return Record(
        operator.name,
        operator.first,
        operator.last,
        digest(operator, known.operators, known.functions),
        "tested" if few else "listed" if listed else "proved",
        judgement.paths,
        (*few, *listed, *short),
    )


def _list(words: str) -> str:
    """The name of the list whose length a term is: of `len.axes`, or of `axes.0`, the number of its elements."""
    found = re.search(r"\blen\.(\w+)|\b(\w+)\.0\b", words)
    return words if found is None else found[1] or found[2]
