"""What `sonnx prove` says: lines of text, JSON, a page of pictures, the questions as SMT-LIB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from sonnx.semantics.terms import TRUE
from sonnx.spec.syntax import PROVED

from . import gates, picture, standard
from .gates import GATES
from .judging import Judged
from .smtlib import file_name, question
from .theory import Obligation, Theory

SAYS = {"passed": "ok", "failed": "FAILED", "skipped": "SKIPPED"}


def head() -> str:
    """The titles of the columns."""
    return f"{'theorem':<26} {'verdict':<8} {'seconds':>7}  {'  '.join(f'{name:<7}' for name in GATES)} proof"


def verdict(judged: Judged) -> str:
    """proved, refused (the obligation was not proved) or missing (a script or a lemma is)."""
    result = judged.result
    return "proved" if result.theorem is not None else "refused" if result.refused is not None else "missing"


def lines(theory: Theory, judged: Judged) -> Iterator[str]:
    """A theorem: a line of columns, a line for what it rests on, a line for each gate that it fails."""
    result = judged.result
    status = {gate.name: SAYS[gate.status] for gate in judged.gates}
    columns = "  ".join(f"{status.get(name, '-'):<7}" for name in GATES)
    rule = result.theorem.rule if result.theorem is not None else result.rule
    yield f"{result.stated.name:<26} {verdict(judged):<8} {result.seconds:>7.2f}  {columns} {rule}".rstrip()
    yield f"    rests on {rests_on(theory, judged)}"
    if result.refused is not None:
        yield f"    {result.refused.obligation.name}: {result.refused.status} {result.refused.reason}".rstrip()
    if result.missing:
        yield f"    {result.missing}"
    yield from (f"    {gate.name}: {gate.detail}" for gate in judged.gates if gate.status == "failed")


def rests_on(theory: Theory, judged: Judged) -> str:
    """Constraints, laws (those of the lemmas too) and theorems."""
    found = judged.result.stated
    lemmas = [it for it in found.needs if it in theory.text.properties and theory.property(it).kind in PROVED]
    parts = {
        "": standard.constraints_of(theory, found),
        "laws ": standard.rests_on(theory, found),
        "theorems ": tuple(lemmas),
    }
    return "; ".join(f"{what}{', '.join(names)}" for what, names in parts.items() if names) or "nothing"


def last_line(found: Sequence[Judged], unmatched: Sequence[str]) -> str:
    """How many are proved, which gates failed, which were skipped."""
    proved = sum(it.result.theorem is not None for it in found)
    failed = {name: sum(g.name == name and g.status == "failed" for it in found for g in it.gates) for name in GATES}
    said = [f"{proved} of {len(found)} theorems proved"]
    said += [f"gate {name} failed for {count}" for name, count in failed.items() if count]
    said += [f"{len(unmatched)} scripts and theorems do not match"] if unmatched else []
    skipped = {gate.name: gate.detail for it in found for gate in it.gates if gate.status == "skipped"}
    said += [f"gate {name} SKIPPED: {why}" for name, why in skipped.items()]
    lemmas = sum(it.result.lemma and 0 < len(it.gates) < len(GATES) for it in found)
    said += [f"gates model and tight not asked of {lemmas} lemmas (--lemmas asks them)"] if lemmas else []
    if not any(it.gates for it in found):
        said.append("no gates asked")
    elif not any(failed.values()) and not skipped:
        said.append("all gates passed")
    return "; ".join(said)


def as_json(theory: Theory, judged: Judged) -> dict[str, object]:
    """A theorem as data."""
    result = judged.result
    return {
        "name": result.stated.name,
        "sentence": result.stated.doc,
        "verdict": verdict(judged),
        "rule": result.theorem.rule if result.theorem is not None else result.rule,
        "seconds": round(result.seconds, 3),
        "constraints": list(standard.constraints_of(theory, result.stated)),
        "laws": list(standard.rests_on(theory, result.stated)),
        "needs": list(result.stated.needs),
        "any_predicate": sorted(theory.opaque),
        "gates": {it.name: {"status": it.status, "detail": it.detail, "seconds": round(it.seconds, 3)}
                  for it in judged.gates},
        "hypotheses": [{"kind": it.kind, "label": it.label, "status": it.status} for it in judged.needs],
    }  # fmt: skip


# ---- Pictures ---------------------------------------------------------------------------------


def pictures(judged: Judged) -> Iterator[tuple[str, str]]:
    """The models of a theorem: a title, and the drawing."""
    name = judged.result.stated.name
    for gate in judged.gates:
        if gate.model is not None:
            yield f"{name}: a model of its hypotheses", picture.drawing(gate.model, f"{name}: its hypotheses hold here")
    for need in judged.needs:
        if need.model is not None:
            title = f"{name} without {need.kind} {' '.join(need.label.split())}"
            what = "refutes the theorem" if need.status == "needed" else "refutes its proof"
            yield title, picture.drawing(need.model, f"{title}: this {what}")


def page(found: Sequence[Judged]) -> str:
    """All pictures as one page."""
    parts = []
    for judged in found:
        stated = judged.result.stated
        parts.append(f"<section><h2>{escape(stated.name)}</h2><p>{escape(stated.doc)}</p>")
        parts += [f"<figure>{drawn}</figure>" for _, drawn in pictures(judged)]
        parts.append("</section>")
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Theorems</title>{"".join(parts)}</html>\n'


def write_pictures(found: Sequence[Judged], folder: Path) -> None:
    """Each picture as a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for judged in found:
        for title, drawn in pictures(judged):
            (folder / f"{file_name(title)}.svg").write_text(drawn, encoding="utf-8", newline="\n")


# ---- SMT-LIB ----------------------------------------------------------------------------------


def dump(theory: Theory, judged: Judged, folder: Path) -> None:
    """Every question about a theorem: its obligations, each without one hypothesis, and its hypotheses alone."""
    folder.mkdir(parents=True, exist_ok=True)
    name = judged.result.stated.name
    for obligation in judged.result.obligations:
        _write(folder, obligation.name, question(obligation))
        for kind, label in gates.needs_of(theory, name):
            if any((it.kind, it.label) == (kind, label) for it in obligation.hypotheses):
                without = obligation.without(kind, label)
                _write(folder, f"{obligation.name} without {kind} {label}", question(without))
    wanted = standard.question(theory, name, refuted=False).wanted
    alone = Obligation(f"{name}, hypotheses", wanted.hypotheses, TRUE, wanted.symbols, wanted.texts)
    _write(folder, alone.name, question(alone, denied=False))


def _write(folder: Path, title: str, text: str) -> None:
    (folder / f"{file_name(title)}.smt2").write_text(f"{text}(check-sat)\n", encoding="ascii", newline="\n")
