"""The parts of proofs/README.md that are made from the text: what is proved, assumed and found, in part 6's words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from sonnx.checker.definedness.record import TABLE, read_records
from sonnx.proofs.findings import findings
from sonnx.proofs.gates import suite
from sonnx.proofs.kernel.theory import Theory
from sonnx.semantics.errors import InternalError
from sonnx.spec.language.syntax import Property

BLOCK = re.compile(r"<!-- (\w+): made from the text -->\n.*?<!-- end -->", re.DOTALL)


def filled(readme: str, theory: Theory) -> str:
    """The text with each of its marked blocks made anew. Raises InternalError for a block that nobody makes."""

    def block(found: re.Match[str]) -> str:
        if found[1] not in PARTS:
            raise InternalError(f"README.md has a block {found[1]}, which nobody makes")
        return "\n".join([f"<!-- {found[1]}: made from the text -->", *PARTS[found[1]](theory), "<!-- end -->"])

    return BLOCK.sub(block, readme)


def _theorems(theory: Theory) -> Iterator[str]:
    """The theorems by family, a line each; of the lemmas their names."""
    stated = suite.theorems(theory)
    for family in suite.FAMILIES:
        title = (family.__doc__ or "").strip().splitlines()[0].rstrip(".")
        names = {name for script in family.SCRIPTS for name in script.shows}
        yield from ("", f"### {title}", "")
        yield from (_line(found) for name, found in stated.items() if name in names and found.kind == "theorem")
        lemmas = [name for name, found in stated.items() if name in names and found.kind == "lemma"]
        yield from ("", f"Lemmas: {', '.join(f'**{name}**' for name in lemmas)}.") if lemmas else ()
    yield ""


def _situations(theory: Theory) -> Iterator[str]:
    yield ""
    yield from (_line(found) for found in theory.text.properties.values() if found.kind == "situation")
    yield ""


def _laws(theory: Theory) -> Iterator[str]:
    yield ""
    yield from (_line(found) for found in theory.text.properties.values() if found.kind == "law")
    yield ""


def _findings(theory: Theory) -> Iterator[str]:
    yield from ("", "| finding | graph |", "|---|---|")
    for name, found in findings.stated(theory).items():
        yield f"| **{name}** {found.doc} | `{findings.GRAPHS[name]}` |"
    yield ""


def _counts(theory: Theory) -> Iterator[str]:
    kinds = Counter(found.kind for found in theory.text.properties.values())
    records = read_records(TABLE.read_text(encoding="utf-8"))
    verdicts = Counter(record.verdict for record in records)
    yield from ("", "| what | how many |", "|---|---|")
    yield f"| theorems about all graphs, `sonnx prove` | {kinds['theorem']}, from {kinds['law']} laws |"
    yield f"| lemmas, which serve them, proved and judged as they are | {kinds['lemma']} |"
    yield f"| situations, what must be possible under all laws | {kinds['situation']} |"
    yield f"| findings, what does not follow | {kinds['finding']} |"
    shown = ", ".join(f"{verdicts[it]} {it}" for it in ("proved", "listed", "tested"))
    yield f"| definitions of operators, `sonnx definedness` | {shown}, of {len(records)} |"
    yield ""


def _line(found: Property) -> str:
    return f"- **{found.name}** {found.doc}"


PARTS: Mapping[str, Callable[[Theory], Iterator[str]]] = {
    "theorems": _theorems,
    "laws": _laws,
    "situations": _situations,
    "findings": _findings,
    "counts": _counts,
}
"""What makes each block."""
