"""The report of `sonnx prove`: lines of text, JSON, a page of pictures, the questions as SMT-LIB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from sonnx.semantics.formulas.terms import TRUE
from sonnx.spec.language.syntax import PROVED
from sonnx.spec.pages.templates import page as filled

from ..gates import gates
from ..gates.gates import GATES
from ..gates.judging import Judged
from ..kernel.smtlib import file_name, question
from ..kernel.theory import Obligation, Theory
from ..models import picture, standard

SAYS = {"passed": "ok", "failed": "FAILED", "skipped": "SKIPPED"}


def head() -> str:
    """The titles of the columns."""
    return f"{'':<26} {'verdict':<8} {'seconds':>7}  {'  '.join(f'{name:<{_width(name)}}' for name in GATES)}  by"


def _width(name: str) -> int:
    return max(len(name), len(SAYS["skipped"]))


def verdict(judged: Judged) -> str:
    """proved, refused (the obligation was not proved) or missing (a script or a lemma is)."""
    result = judged.result
    return "proved" if result.theorem is not None else "refused" if result.refused is not None else "missing"


def lines(theory: Theory, judged: Judged) -> Iterator[str]:
    """A theorem: a line of columns, a line for what it rests on, a line for each gate that it fails."""
    result = judged.result
    status = {gate.name: SAYS[gate.status] for gate in judged.gates}
    status |= {it.name: f"up to {it.size[:1]}" for it in judged.gates if it.name == "countermodel" and it.size}
    columns = "  ".join(f"{status.get(name, '-'):<{_width(name)}}" for name in GATES)
    rule = result.theorem.rule if result.theorem is not None else result.rule
    yield f"{result.stated.name:<26} {verdict(judged):<8} {result.seconds:>7.2f}  {columns}  {rule}".rstrip()
    yield f"    rests on {rests_on(theory, judged)}"
    if result.refused is not None:
        yield f"    {result.refused.obligation.name}: {result.refused.status} {result.refused.reason}".rstrip()
    if result.missing:
        yield f"    {result.missing}"
    yield from (f"    {gate.name}: {gate.detail}" for gate in judged.gates if gate.status == "failed")


def rests_on(theory: Theory, judged: Judged) -> str:
    """Constraints, laws (those of the lemmas too) and theorems."""
    theorem = judged.result.stated
    lemmas = [it for it in theorem.needs if it in theory.text.properties and theory.property(it).kind in PROVED]
    parts = {
        "": standard.constraints_of(theory, theorem),
        "laws ": standard.rests_on(theory, theorem),
        "theorems ": tuple(lemmas),
    }
    return "; ".join(f"{what}{', '.join(names)}" for what, names in parts.items() if names) or "nothing"


def proofs(judgements: Sequence[Judged]) -> Iterator[str]:
    """The table of cvc5's proofs: how many there are, what the checker says of them, steps on trust by rule."""
    every = {it.name: it for judged in judgements for gate in judged.gates for it in gate.proofs}
    if every:
        status = Counter(it.status for it in every.values())
        trusted: Counter[str] = sum((Counter(it.trusted) for it in every.values()), Counter())
        free = sum(not it.trusted for it in every.values())
        words = ("correct", "incomplete", "refused") if "written" not in status else ()
        said = ", ".join(f"{status[word]} {word}" for word in words)
        yield f"proofs of cvc5: {len(every)} written, {free} without a step on trust{f'; {said}' if said else ''}"
        yield from (f"    {rule}: {count} steps on trust" for rule, count in sorted(trusted.items()))


def situations(judgements: Sequence[Judged]) -> Iterator[str]:
    """Each situation with the size of its model, a line each."""
    for gate in next((it.situations for it in judgements if it.situations), ()):
        yield f"situation {gate.name}: {'possible' if gate.status == 'passed' else 'FAILED'}, {gate.detail}"


def last_line(judgements: Sequence[Judged], unmatched: Sequence[str]) -> str:
    """The numbers of those that are proved and of those that passed each gate; the gates that were skipped, and why."""
    kinds = [
        (what, [it for it in judgements if it.result.lemma == (what == "lemmas")]) for what in ("theorems", "lemmas")
    ]
    counted = [f"{sum(it.result.theorem is not None for it in of)} of {len(of)} {what}" for what, of in kinds if of]
    said = [f"{' and '.join(counted)} proved"]
    said += [f"{len(unmatched)} scripts and theorems do not match"] if unmatched else []
    asked = [it for it in judgements if it.gates]
    if not asked:
        return "; ".join((*said, "no gates asked"))
    passed = {name: sum(g.name == name and g.status == "passed" for it in asked for g in it.gates) for name in GATES}
    skipped = {gate.name: gate.detail for it in asked for gate in it.gates if gate.status == "skipped"}
    told = ", ".join(f"{name} {passed[name]}" for name in GATES if name not in skipped)
    said.append(f"of {len(asked)} judged passed: {told}")
    said += [f"gate {name} SKIPPED: {why}" for name, why in skipped.items()]
    failed = {name: sum(g.name == name and g.status == "failed" for it in asked for g in it.gates) for name in GATES}
    said += [f"gate {name} failed for {count}" for name, count in failed.items() if count]
    sizes = sorted({gate.size for it in asked for gate in it.gates if gate.size})
    said += [f"no countermodel up to {sizes[0]}, for some up to {sizes[-1]}" if len(sizes) > 1 else
             f"no countermodel up to {sizes[0]}"] if sizes and not failed["countermodel"] else []  # fmt: skip
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
        "kind": result.stated.kind,
        "gates": {it.name: {"status": it.status, "detail": it.detail, "seconds": round(it.seconds, 3)}
                  for it in judged.gates},
        "situations": {it.name: it.status for it in judged.situations},
        "proofs": [{"name": it.name, "status": it.status, "trusted": dict(it.trusted)}
                   for gate in judged.gates for it in gate.proofs],
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


def page(judgements: Sequence[Judged]) -> str:
    """All pictures as one page. Raises MissingExtraError where templates cannot be filled."""
    gated = {True: "", False: ", and not every gate passed"}
    theorems = [(it.result.stated, f"{verdict(it)}{gated[it.passed]}", list(pictures(it))) for it in judgements]
    return filled(__package__, "pictures.html", "pictures.css", theorems=theorems)


def write_pictures(judgements: Sequence[Judged], folder: Path) -> None:
    """Each picture as a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for judged in judgements:
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
    wanted = standard.question(theory, name, refuted=False)
    alone = Obligation(f"{name}, hypotheses", wanted.hypotheses, TRUE, wanted.symbols, wanted.texts)
    _write(folder, alone.name, question(alone, denied=False))


def _write(folder: Path, title: str, text: str) -> None:
    (folder / f"{file_name(title)}.smt2").write_text(f"{text}(check-sat)\n", encoding="ascii", newline="\n")
