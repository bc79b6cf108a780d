"""Replaying a certificate on its model: a second opinion that shares no code with the certifier, and needs no solver.

Every statement of a certificate is derived again: digests of files, facts of the graph, verdicts of rules, the places
of violations, witnesses, verdicts of rule sets. What cannot be derived here is named, never taken on trust.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.spec.library import Specification, specification
from sonnx.spec.syntax import Binder, Expr, Profile, ProfileRule, clause

from ..certificate import LENIENT, LISTED, read
from . import files, paths
from .facts import Facts, external_locations, facts
from .places import Instance
from .reader import read as read_model
from .rules import JUDGES
from .walks import rings
from .witness import WITNESSES

NOT_EXAMINED: Final = (
    "values of weights, other than small constants that shapes and modes depend on",
    "requirements of operators beyond the rules of the rule sets domain and sonnx-constraints",
    "numerical accuracy and the behaviour of any runtime",
    "training information of the model (training_info)",
)
TOOLS: Final = ("onnx", "sonnx", "z3-solver")
PRECEDENCE: Final = ("Node", "Function", "Tensor", "Graph")
WORST: Final = ("VIOLATES", "UNDECIDED", "CONFORMS")
SHOWN: Final = 200

Object = Mapping[str, Any]


class Outcome(StrEnum):
    """What a recheck found. CONFIRMED: every statement was derived again."""

    CONFIRMED = "CONFIRMED"
    REFUTED = "REFUTED"
    NOT_CHECKED = "NOT-CHECKED"


@dataclass(frozen=True, slots=True)
class Recheck:
    """The outcome, the reasons against CONFIRMED in one line each, and the rules that could not be replayed."""

    outcome: Outcome
    reasons: tuple[str, ...] = ()
    not_replayed: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The outcome as JSON text."""
        return json.dumps(
            {"not_replayed": list(self.not_replayed), "outcome": self.outcome.value, "reasons": list(self.reasons)},
            indent=2,
        )


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason against CONFIRMED: `refutes`, or else something that cannot be derived here (`rule`: which one)."""

    reason: str
    refutes: bool = True
    rule: str = ""


def recheck(certificate: bytes | Path | str, model: Path | str) -> Recheck:
    """Replays a certificate (its bytes, or the path of a file) on the model at the given path.

    Raises ModelError when one of the two cannot be read at all.
    """
    statement = read(certificate)
    path = Path(model)
    data = files.content(path)
    doubts = list(_model_file(statement, data))
    if not doubts:
        doubts = list(_replay(statement, path, data))
    return _outcome(doubts)


def _outcome(doubts: Sequence[Doubt]) -> Recheck:
    reasons = tuple(dict.fromkeys(doubt.reason for doubt in doubts))
    rules = tuple(dict.fromkeys(doubt.rule for doubt in doubts if doubt.rule))
    if any(doubt.refutes for doubt in doubts):
        return Recheck(Outcome.REFUTED, reasons, rules)
    return Recheck(Outcome.NOT_CHECKED if doubts else Outcome.CONFIRMED, reasons, rules)


def _model_file(statement: Object, data: bytes) -> Iterator[Doubt]:
    if statement["subject"][0]["digest"]["sha256"] != hashlib.sha256(data).hexdigest():
        yield Doubt("the model file is not the one that was certified: its SHA-256 differs")


def _replay(statement: Object, path: Path, data: bytes) -> Iterator[Doubt]:
    predicate: Object = statement["predicate"]
    try:
        source, proto = files.parse(data)
        reading = read_model(proto)
        yield from _external(statement, path, external_locations(reading))
        found = facts(reading, source)
    except Unsupported as error:
        yield Doubt(f"the model cannot be replayed: {error}", refutes=False)
        return
    except ModelError as error:
        yield Doubt(f"the model cannot be replayed: {error}")
        return
    yield from _equal(predicate["model"], _model(found), "model")
    yield from _equal(predicate["not_examined"], list(NOT_EXAMINED), "not_examined")
    yield from _equal(sorted(predicate["tools"]), list(TOOLS), "tools")
    yield from _rules(predicate, found)


# ---- The model ----------------------------------------------------------------------------------


def _external(statement: Object, path: Path, locations: Sequence[str]) -> Iterator[Doubt]:
    """Doubts about the files of external data: the certificate must list exactly those that the model names."""
    listed = statement["subject"][1:]
    if [entry["name"] for entry in listed] != sorted(locations):
        yield Doubt("the certificate does not list the files of external data that the model names")
        return
    for entry in listed:
        name = entry["name"]
        if files.digest(files.inside(path.parent, name), paths.quoted(name)) != entry["digest"]["sha256"]:
            yield Doubt(f"the external data {paths.quoted(name)} are not those that were certified: SHA-256 differs")


def _model(found: Facts) -> dict[str, object]:
    reading = found.reading
    return {
        "functions": [list(key) for key in reading.functions],
        "graphs": len(reading.graphs),
        "ir_version": reading.proto.ir_version,
        "nodes": len(reading.nodes),
        "opsets": [list(entry) for entry in reading.opsets],
        "source": found.source,
        "tensors": len(reading.tensors),
    }


def _equal(stated: object, derived: object, place: str) -> Iterator[Doubt]:
    """Doubts where the stated value is not the derived one; the place is named as deep as keys go."""
    if isinstance(stated, dict) and isinstance(derived, dict) and set(stated) == set(derived):
        for key in sorted(derived):
            yield from _equal(stated[key], derived[key], f"{place}.{key}")
    elif stated != derived or type(stated) is not type(derived):
        yield Doubt(f"{place} is stated as {_shown(stated)}, derived as {_shown(derived)}")


def _shown(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


# ---- Rule sets ----------------------------------------------------------------------------------


def _rules(predicate: Object, found: Facts) -> Iterator[Doubt]:
    """Doubts about rule sets, their rules, verdicts and witnesses."""
    text = specification()
    names = [entry["name"] for entry in predicate["rule_sets"]]
    if len(set(names)) != len(names):
        yield Doubt("a rule set is listed twice")
        return
    editions = list(_editions(predicate["rule_sets"], text))
    if editions:
        yield from editions
        return
    expected = [
        (entry, rule)
        for entry in predicate["rule_sets"]
        for rule in _active(text.profiles[entry["name"]], entry["variant"])
    ]
    collecting = [
        entry["name"] for entry in predicate["rule_sets"] if clause(text.profiles[entry["name"]].clauses, "collects")
    ]
    for name in collecting:
        yield Doubt(f"the requirements of operators ({name}) are not replayed: that takes a solver", False, rule=name)
    stated = [rule for rule in predicate["rules"] if rule["rule_set"] not in collecting]
    wanted = [(entry["name"], rule.id) for entry, rule in expected]
    if [(rule["rule_set"], rule["id"]) for rule in stated] != wanted:
        yield Doubt("the rules are not those of the rule sets, each once and in their order")
        return
    replays = {name: _Replay.of(name, found) for name in dict.fromkeys(rule.constraint for _, rule in expected)}
    for (entry, rule), item in zip(expected, stated, strict=True):
        yield from _rule(entry, rule, item, text, replays[rule.constraint], found)
    yield from _verdicts(predicate)
    yield from _witnesses(predicate, text, found)


def _editions(rule_sets: Sequence[Object], text: Specification) -> Iterator[Doubt]:
    """Doubts about the rule sets as such: known here, in this edition, in a variant that they have."""
    for entry in rule_sets:
        profile = text.profiles.get(entry["name"])
        shown = paths.quoted(entry["name"])
        if profile is None:
            yield Doubt(f"there is no rule set {shown} in this installation", refutes=False)
            continue
        if entry["digest"] != _digest(text, profile):
            yield Doubt(
                f"the rule set {shown} has another digest in this installation: recheck with the edition that "
                f"certified, or certify again",
                refutes=False,
            )
        variants = {clause(rule.clauses, "variant") for rule in profile.rules} - {None}
        if entry["variant"] not in (variants or {""}):
            yield Doubt(f"the rule set {shown} has no variant {paths.quoted(entry['variant'])}")
        lenient = any(_status(rule) in LENIENT for rule in _active(profile, entry["variant"]))
        if entry["strict"] and not lenient:
            yield Doubt(f"the rule set {shown} is stated as strict, which makes no difference to it")


def _digest(text: Specification, profile: Profile) -> str:
    """SHA-256 over one line "NAME DIGEST" for each text that fixes the meaning of a rule set, sorted by name."""
    left_out = ("profiles/", "6-") if clause(profile.clauses, "collects") else ("profiles/", "5-operators/", "6-")
    names = sorted(name for name in text.digests if name == profile.span.file or not name.startswith(left_out))
    return hashlib.sha256("".join(f"{name} {text.digests[name]}\n" for name in names).encode()).hexdigest()


def _active(profile: Profile, variant: str) -> list[ProfileRule]:
    return [rule for rule in profile.rules if clause(rule.clauses, "variant") in (None, variant)]


def _status(rule: ProfileRule) -> str:
    return clause(rule.clauses, "status") or "current"


# ---- Rules --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Replay:
    """A constraint, judged here: the verdict and the places that make it; None when it is not judged, and why."""

    verdict: str | None
    places: tuple[Instance, ...] = ()
    why: str = ""

    @staticmethod
    def of(constraint: str, found: Facts) -> _Replay:
        judge = JUDGES.get(constraint)
        if judge is None:
            return _Replay(None, why="this rechecker has no judge for it")
        try:
            places = tuple(judge(found))
        except Unsupported as error:
            return _Replay(None, why=str(error))
        failing = tuple(place for place in places if place.fails)
        return _Replay("violated" if failing else "unknown" if places else "holds", failing or places)


def _rule(
    entry: Object, rule: ProfileRule, item: Object, text: Specification, replay: _Replay, found: Facts
) -> Iterator[Doubt]:
    """Doubts about one rule."""
    place = f"{entry['name']} {rule.id}"
    status = _status(rule)
    statement = text.constraints[rule.constraint].doc
    derived = {
        "constraint": rule.constraint,
        "counted": status != "advisory" and (entry["strict"] or status not in LENIENT),
        "statement": hashlib.sha256(statement.encode()).hexdigest(),
        "status": status,
    }
    yield from _equal({key: item[key] for key in derived}, derived, place)
    if replay.verdict is None:
        yield Doubt(f"{place} ({rule.constraint}) is not replayed: {replay.why}", refutes=False, rule=place)
    elif item["verdict"] != replay.verdict:
        refutes = "unknown" not in (item["verdict"], replay.verdict)
        stated = f"{place} is stated as {item['verdict']}, replayed as {replay.verdict}"
        yield Doubt(stated, refutes, rule="" if refutes else place)
    else:
        places = () if replay.verdict == "holds" else replay.places
        yield from _equal(item["total"], len(places), f"{place}: total")
        variables = _variables(text.constraints[rule.constraint].formula)
        spelled = [_place(instance, variables, found) for instance in places[:LISTED]]
        if replay.verdict == "violated" and clause(text.constraints[rule.constraint].clauses, "evidence") == "order":
            spelled = _with_rings(spelled, places, found)
        yield from _findings(item["findings"], spelled, place)


def _with_rings(spelled: list[Object], places: Sequence[Instance], found: Facts) -> list[Object]:
    """The findings of a rule about order: the first on each cycle names its nodes."""
    numbers = [int(place.elements[0][1]) for place in places[: len(spelled)]]
    cycles = ([found.reading.nodes[n].path for n in ring] for ring in rings(found, numbers))
    return [
        {**item, "witness": {**item["witness"], "cycle": cycle}} if cycle else item
        for item, cycle in zip(spelled, cycles, strict=True)
    ]


def _findings(stated: Sequence[Object], derived: Sequence[Object], place: str) -> Iterator[Doubt]:
    if len(stated) != len(derived):
        yield Doubt(f"{place}: {len(stated)} places are listed, not {len(derived)}")
    for index, (one, other) in enumerate(zip(stated, derived, strict=False)):
        yield from _equal(one, other, f"{place}: findings[{index}]")


def _variables(formula: Expr) -> list[str]:
    """The names that the outermost universal quantifiers of a constraint's text bind, in order, bare of leading _."""
    names: list[str] = []
    while formula.head == "forall":
        names += [part.name.lstrip("_") for part in formula.args if isinstance(part, Binder)]
        formula = next(part for part in formula.args if isinstance(part, Expr))
    return names


def _place(instance: Instance, variables: Sequence[str], found: Facts) -> Object:
    """The finding that a certificate lists for an instance."""
    spelled = [_spell(sort, element, found) for sort, element in instance.elements]
    sorts = [sort for sort, _ in instance.elements]
    where = (spelled[sorts.index(wanted)] for wanted in PRECEDENCE if wanted in sorts)
    return {"where": next(where, "/"), "witness": dict(zip(variables, spelled, strict=True))}


def _spell(sort: str, element: int | str, found: Facts) -> int | str:
    reading = found.reading
    match sort, element:
        case "Node", int():
            return reading.nodes[element].path
        case "Tensor", int():
            return reading.tensors[element].path
        case "Graph", int():
            return reading.graphs[element].path
        case "Import", _:
            return "/"
        case "Function", int():
            return paths.function(*list(dict.fromkeys(reading.functions))[element])
        case _:
            return element


def _verdicts(predicate: Object) -> Iterator[Doubt]:
    """Doubts about the verdicts of the rule sets and of the whole."""
    for entry in predicate["rule_sets"]:
        own = {r["verdict"] for r in predicate["rules"] if r["rule_set"] == entry["name"] and r["counted"]}
        derived = "VIOLATES" if "violated" in own else "UNDECIDED" if "unknown" in own else "CONFORMS"
        yield from _equal(entry["verdict"], derived, f"the verdict of {entry['name']}")
    verdicts = {entry["verdict"] for entry in predicate["rule_sets"]}
    yield from _equal(predicate["verdict"], next(v for v in WORST if v in verdicts), "the verdict")


# ---- Witnesses ----------------------------------------------------------------------------------


def _witnesses(predicate: Object, text: Specification, found: Facts) -> Iterator[Doubt]:
    """Doubts about the witnesses: one for each constraint that holds, of the kind that its text asks for."""
    judged = {rule["constraint"] for rule in predicate["rules"] if rule["verdict"] == "holds"}
    holding = judged & text.constraints.keys()
    if set(predicate["witnesses"]) != judged:
        yield Doubt("the witnesses are not those of the constraints that hold")
    made: dict[str, Mapping[str, object]] = {}
    for name in sorted(holding & set(predicate["witnesses"])):
        kind = clause(text.constraints[name].clauses, "evidence") or "places"
        if kind not in made:
            made[kind] = {"kind": kind, **WITNESSES[kind](found)}
        if predicate["witnesses"][name] != made[kind]:
            yield Doubt(f"the witness for {name} is not the one of kind {kind}")
