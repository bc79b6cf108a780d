"""The replay: every statement of a certificate is derived again, from the model and the specification's text.

Digests of files, facts of the model, the verdict of each rule by evaluating its own formula, the places where it fails,
witnesses, verdicts of rule sets. What cannot be derived here is named, never taken on trust.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from sonnx.semantics.errors import ModelError, Unsupported

from . import files, operators, paths
from .facts import Facts, external_locations, facts
from .fixpoints import Fixpoints
from .form import TRANSFORM_TYPE, read, spelled
from .formulas import Context, Instance, compiled, instances, outermost
from .outcomes import Outcome, Recheck
from .reader import read as read_model
from .tables import tables
from .tables.stores import stores
from .text import Declaration, Rule, RuleSet, Text, forget, texts
from .transforms.judging import judged
from .values import Element, Tables, Value
from .waivers import Waivers, accepted, told
from .witness import fits, over_nodes, rings

LISTED: Final = 100
"""The most places of one rule that a certificate lists; `total` counts all."""
LENIENT: Final = frozenset({"TBC", "defective", "open", "reported"})
"""Statuses of rules that count in strict mode only."""
NOT_EXAMINED: Final = (
    "values of weights, other than small constants that shapes and modes depend on",
    "requirements of operators beyond the rules of the rule sets domain and sonnx-constraints",
    "sizes that reach 2^48, and different open sizes whose product does",
    "numerical accuracy and the behaviour of any runtime",
    "training information of the model (training_info)",
)
OF_USERS: Final = (
    "that indices and divisors of added operators are defined wherever their requirements hold (sonnx definedness)"
)
TOOLS: Final = ("onnx", "sonnx", "z3-solver")
PRECEDENCE: Final = ("Node", "Function", "Tensor", "Graph")
WORST: Final = ("VIOLATES", "UNDECIDED", "CONFORMS")
SHOWN: Final = 200

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason against CONFIRMED: `refutes`, or else something that cannot be derived here (`rule`: which one)."""

    reason: str
    refutes: bool = True
    rule: str = ""


def recheck(certificate: bytes | Path | str, model: Path | str, other: Path | str | None = None) -> Recheck:
    """Replays a certificate (its bytes, or the path of a file) on the model at the given path; one of a transform or of
    a comparison is about another model too.

    Raises ModelError when one of them cannot be read at all, or a model is missing or not asked for.
    """
    statement = read(certificate)
    if (statement["predicateType"] == TRANSFORM_TYPE) != (other is not None):
        wanted = "one model: name no other" if other is not None else "two models: name both, in their order"
        raise ModelError(f"certificate: is about {wanted}")
    if other is not None:
        forget()
        return judged(statement, Path(model), Path(other))
    return compared(statement, Subject(Path(model)))


def compared(statement: Object, subject: Subject) -> Recheck:
    """The statement about a model against what is derived, by the added texts as their files are now."""
    forget()
    collects = gc.isenabled()
    gc.disable()  # it would look at millions of tuples again and again, and free none of them
    try:
        doubts = list(_model_file(statement, subject)) or list(_added(statement)) or list(_replay(statement, subject))
    except RecursionError:
        doubts = [
            Doubt("the model or a formula of the certificate nests too deeply to be replayed here", refutes=False)
        ]
    finally:
        if collects:
            gc.enable()
    reasons = tuple(dict.fromkeys(doubt.reason for doubt in doubts))
    rules = tuple(dict.fromkeys(doubt.rule for doubt in doubts if doubt.rule))
    waived = tuple(map(told, statement["predicate"].get("waivers", ())))
    if any(doubt.refutes for doubt in doubts):
        return Recheck(Outcome.REFUTED, reasons, rules, waived)
    return Recheck(Outcome.NOT_CHECKED if doubts else Outcome.CONFIRMED, reasons, rules, waived)


class Subject:
    """A model file, and what is derived of it: each thing once, when a statement speaks of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = files.content(path)
        self.facts = cache(self._facts)
        self.evaluation = cache(lambda: Evaluation(texts(), self.facts()))
        self.requirements = cache(self._requirements)

    def _facts(self) -> Facts:
        source, proto = files.parse(self.data)
        return facts(read_model(proto), source, self.path.parent)

    def _requirements(self, sizes: tuple[tuple[str, int, int | None], ...]) -> operators.Derivation:
        """The requirements of the operators' texts on the model, with limits of sizes."""
        limits = {label: (least, most) for label, least, most in sizes}
        return operators.derive(self.facts(), self.evaluation().text.operators, limits)


def _model_file(statement: Object, subject: Subject) -> Iterator[Doubt]:
    if statement["subject"][0]["digest"]["sha256"] != hashlib.sha256(subject.data).hexdigest():
        yield Doubt("the model file is not the one that was certified: its SHA-256 differs")


def _added(statement: Object) -> Iterator[Doubt]:
    """Doubts about the texts of a user: the ones that are added here must be those that the certificate rests on."""
    stated = {it["digest"]["sha256"]: it["name"] for it in statement["predicate"].get("added", ())}
    here = texts().added
    for sha256 in sorted(stated.keys() & here.keys()):
        if stated[sha256] != here[sha256]:
            named = f"{paths.quoted(here[sha256])}, not {paths.quoted(stated[sha256])}"
            yield Doubt(f"the added text of the SHA-256 {sha256} is named {named}", refutes=False)
    for sha256 in sorted(stated.keys() - here.keys(), key=lambda it: (stated[it], it)):
        name = paths.quoted(stated[sha256])
        if stated[sha256] in here.values():
            reason = f"the added text {name} is not the one that was certified with: its SHA-256 differs from {sha256}"
        else:
            reason = f"the certificate rests on the text {name} (SHA-256 {sha256}): recheck with `sonnx --spec` and it"
        yield Doubt(reason, refutes=False)
    for sha256 in sorted(here.keys() - stated.keys()) if stated.keys() <= here.keys() else ():
        yield Doubt(
            f"the certificate does not rest on the added text {paths.quoted(here[sha256])}: recheck without it", False
        )


def _replay(statement: Object, subject: Subject) -> Iterator[Doubt]:
    predicate: Object = statement["predicate"]
    try:
        facts = subject.facts()
        yield from _external(statement, subject.path, external_locations(facts.reading))
    except Unsupported as error:
        yield Doubt(f"the model cannot be replayed: {error}", refutes=False)
        return
    except ModelError as error:
        yield Doubt(f"the model cannot be replayed: {error}")
        return
    yield from _equal(predicate["model"], _model(facts), "model")
    unproved = [OF_USERS] if predicate.get("added") else []
    yield from _equal(predicate["not_examined"], [*NOT_EXAMINED, *unproved], "not_examined")
    yield from _equal(sorted(predicate["tools"]), list(TOOLS), "tools")
    yield from _rule_sets(predicate, subject)


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


def _model(facts: Facts) -> dict[str, object]:
    reading = facts.reading
    return {
        "functions": [list(key) for key in reading.functions],
        "graphs": len(reading.graphs),
        "ir_version": reading.proto.ir_version,
        "nodes": len(reading.nodes),
        "opsets": [list(entry) for entry in reading.opsets],
        "source": facts.source,
        "tensors": len(reading.tensors),
    }


def _equal(stated: object, derived: object, place: str) -> Iterator[Doubt]:
    """Doubts where the stated value is not the derived one, to the type; the place is named as deep as keys go."""
    if isinstance(stated, dict) and isinstance(derived, dict) and set(stated) == set(derived):
        for key in sorted(derived):
            yield from _equal(stated[key], derived[key], f"{place}.{key}")
    elif spelled(stated) != spelled(derived):
        yield Doubt(f"{place} is stated as {_shown(stated)}, derived as {_shown(derived)}")


def _shown(value: object) -> str:
    text = spelled(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


# ---- Rule sets ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """A rule set of the certificate: its entry there, and what the text says of it."""

    entry: Object
    rule_set: RuleSet

    @property
    def rules(self) -> list[Rule]:
        """The rules that are active in the variant, in order."""
        return [rule for rule in self.rule_set.rules if rule.variant in (None, self.entry["variant"])]


def _rule_sets(predicate: Object, subject: Subject) -> Iterator[Doubt]:
    """Doubts about rule sets, their rules, verdicts and witnesses."""
    names = [entry["name"] for entry in predicate["rule_sets"]]
    if len(set(names)) != len(names):
        yield Doubt("a rule set is listed twice")
        return
    try:
        evaluation = subject.evaluation()
        text = evaluation.text
        asked: list[_Asked] = []
        for entry in predicate["rule_sets"]:
            rule_set = text.rule_set(entry["name"])
            if rule_set is None:
                shown = paths.quoted(entry["name"])
                yield Doubt(f"there is no rule set {shown} in this installation", refutes=False)
            else:
                asked.append(_Asked(entry, rule_set))
        editions = [doubt for it in asked for doubt in _edition(it, names, text)]
    except Unsupported as error:
        yield Doubt(str(error), refutes=False)
        return
    yield from editions
    if editions or len(asked) < len(names):
        return
    collecting = {it.rule_set.name for it in asked if it.rule_set.collects}
    own = [rule for rule in predicate["rules"] if rule["rule_set"] not in collecting]
    expected = [(it, rule) for it in asked for rule in it.rules]
    if [(rule["rule_set"], rule["id"]) for rule in own] != [(it.rule_set.name, rule.id) for it, rule in expected]:
        yield Doubt("the rules are not those of the rule sets, each once and in their order")
        return
    waivers = Waivers(predicate, text)
    for (it, rule), item in zip(expected, own, strict=True):
        yield from _rule(it, rule, item, evaluation, waivers)
    yield from _requirements(predicate, [it for it in asked if it.rule_set.collects], subject, waivers)
    yield from (Doubt(objection) for objection in waivers.objections())
    yield from _verdicts(predicate, asked)
    yield from _witnesses(predicate, own, evaluation)


def _requirements(
    predicate: Object, collecting: Sequence[_Asked], subject: Subject, waivers: Waivers
) -> Iterator[Doubt]:
    """Doubts about the rule sets whose rules are statements of operators, and about the sizes that they speak of."""
    names = [it.rule_set.name for it in collecting]
    yield from _equal(sorted(predicate["conditions"]), sorted(names), "the rule sets with conditions")
    if not collecting:
        yield from _equal(predicate["sizes"], [], "sizes")
        return
    derived = subject.requirements(tuple((label, least, most) for label, least, most in predicate["sizes"]))
    labels = [label for label, _, _ in predicate["sizes"]]
    if labels != list(derived.sizes):
        missing = not set(derived.sizes) <= set(labels) or len(set(labels)) != len(labels)
        stated = f"the sizes are stated as {_shown(labels)}, derived as {_shown(list(derived.sizes))}"
        yield Doubt(stated, refutes=missing, rule="" if missing else names[0])
    if any(least < 0 or (most is not None and most < least) for _, least, most in predicate["sizes"]):
        yield Doubt("a size has no value that it may take")
    for it in collecting:
        name, kind = it.rule_set.name, it.rule_set.collects
        rules = [rule for rule in predicate["rules"] if rule["rule_set"] == name]
        for rule in rules:
            yield from _collected(rule, name, predicate["witnesses"])
            yield from _waived(rule, name, kind, waivers)
        terms = predicate["conditions"].get(name, [])
        if any(term is False for term in terms) and all(rule["verdict"] != "violated" for rule in rules):
            yield Doubt(f"{name}: no sizes are stated for which the model is well formed, and no rule is violated")
        objections = (
            *operators.objections(rules, kind, derived),
            *operators.condition_objections(terms, kind, derived),
        )
        for objection in objections:
            place = f"{name} {objection.rule}".strip()
            rule = "" if objection.refutes else place
            yield Doubt(f"{place}: {objection.reason}", objection.refutes, rule=rule)


def _collected(rule: Object, name: str, witnesses: Object) -> Iterator[Doubt]:
    """Doubts about the form of a rule that is a statement of an operator."""
    place = f"{name} {rule['id']}"
    owed = rule["total"] if rule["verdict"] == "obligation" else len(rule["besides"].get("obligation", []))
    derived = {"constraint": rule["id"], "counted": True, "obligations": owed, "status": "current"}
    if max(owed, len(rule["besides"].get("obligation", []))) >= LISTED:
        del derived["obligations"]
    yield from _equal({key: rule[key] for key in derived}, derived, place)
    listed = len(rule["findings"])
    if listed != min(rule["total"], LISTED) or (not listed and rule["verdict"] == "violated"):
        yield Doubt(f"{place}: {listed} places are listed, {rule['total']} are stated")
    if not set(rule["besides"]) <= {"obligation", "conditional"} - {rule["verdict"]}:
        yield Doubt(f"{place}: places are stated besides, of a verdict that is not milder")
    for places in (rule["findings"], *rule["besides"].values()):
        shown = [spelled(finding) for finding in places]
        if len(set(shown)) != len(shown):
            yield Doubt(f"{place}: a place is listed twice")
    if rule["verdict"] == "holds" and spelled(witnesses.get(rule["constraint"])) != spelled({"kind": "nodes"}):
        yield Doubt(f"the witness for {rule['id']} is not the one of kind nodes")


def _waived(rule: Object, name: str, kind: str, waivers: Waivers) -> Iterator[Doubt]:
    """Doubts about what is waived of a statement of an operator, by the places that are listed."""
    place, stated = f"{name} {rule['id']}", rule.get("waived", 0)
    if kind == "require" and stated:
        yield Doubt(f"{place}: what an operator requires cannot be waived")
    elif kind == "restrict" and rule["verdict"] == "violated":
        derived = waivers.fitting(name, rule["id"], (finding["where"] for finding in rule["findings"]))
        if len(rule["findings"]) == rule["total"] or not (stated or derived):
            yield from _equal(stated, derived, f"{place}: waived")
        else:
            why = f"{place}: of {rule['total']} places not all are listed, so what is waived is not derived"
            yield Doubt(why, refutes=False, rule=place)
    elif stated:
        yield Doubt(f"{place}: {stated} places are stated as waived of a rule that is not violated")


def _edition(it: _Asked, names: Sequence[str], text: Text) -> Iterator[Doubt]:
    """Doubts about a rule set as such: this edition, a variant that it has, with all that it includes."""
    entry, shown = it.entry, paths.quoted(it.rule_set.name)
    if entry["digest"] != text.digest(it.rule_set):
        yield Doubt(
            f"the rule set {shown} has another digest in this installation: recheck with the edition that "
            f"certified, or certify again",
            refutes=False,
        )
    yield from _equal(entry["includes"], list(it.rule_set.includes), f"{it.rule_set.name}: includes")
    for name in it.rule_set.includes:
        if name not in names:
            yield Doubt(f"the rule set {shown} includes {paths.quoted(name)}, which the certificate leaves out")
    variants = {rule.variant for rule in it.rule_set.rules} - {None}
    if entry["variant"] not in (variants or {""}):
        yield Doubt(f"the rule set {shown} has no variant {paths.quoted(entry['variant'])}")


def _verdicts(predicate: Object, asked: Sequence[_Asked]) -> Iterator[Doubt]:
    """Doubts about the verdicts of the rule sets and of the whole, and about the counts of obligations."""
    own: dict[str, str] = {}
    owed: dict[str, int] = {}
    strictness: set[bool] = set()
    for it in asked:
        name, strict = it.rule_set.name, it.entry["strict"]
        rules = [rule for rule in predicate["rules"] if rule["rule_set"] == name]
        counted = [rule for rule in rules if rule["counted"]]
        verdicts = {rule["verdict"] for rule in counted if not accepted(rule)}
        left = verdicts & {"obligation", "conditional"}
        if left or any(rule["status"] in LENIENT for rule in rules):
            strictness.add(strict)
        elif strict:
            yield Doubt(f"the rule set {paths.quoted(name)} is stated as strict, which makes no difference to it")
        violates = "violated" in verdicts or (strict and "conditional" in verdicts)
        undecided = "unknown" in verdicts or (strict and "obligation" in verdicts)
        own[name] = "VIOLATES" if violates else "UNDECIDED" if undecided else "CONFORMS"
        owed[name] = sum(rule["obligations"] for rule in counted)
    if len(strictness) > 1:
        yield Doubt("some rule sets are stated as strict, and others not, to which it makes a difference")
    includes = {it.rule_set.name: it.rule_set.includes for it in asked}
    for it in asked:
        name = it.rule_set.name
        parts = [name]
        for part in parts:
            parts += [other for other in includes[part] if other not in parts]
        yield from _equal(it.entry["verdict"], _worst(own[part] for part in parts), f"the verdict of {name}")
        yield from _equal(it.entry["obligations"], sum(owed[part] for part in parts), f"the obligations of {name}")
    yield from _equal(predicate["verdict"], _worst(own.values()), "the verdict")
    yield from _equal(predicate["obligations"], sum(owed.values()), "the obligations")


def _worst(verdicts: Iterator[str] | Sequence[str] | Any) -> str:
    given = set(verdicts)
    return next(verdict for verdict in WORST if verdict in given)


# ---- Rules --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judgement:
    """A constraint, evaluated: the verdict and the places that make it; None when it cannot be evaluated, and why.

    awaiting: the places that are open, and that by its text data decide.
    """

    verdict: str | None
    places: tuple[Instance, ...] = ()
    why: str = ""
    awaiting: tuple[Instance, ...] = ()


class Evaluation:
    """The constraints of the text, evaluated on the facts of one model, each once."""

    def __init__(self, text: Text, facts: Facts, known: Tables | None = None) -> None:
        self.text, self.facts = text, facts
        self.tables = known or tables(facts, text)
        self.fixpoints = Fixpoints(text, self.tables)
        self.judge = cache(self._judge)

    def constraint(self, name: str) -> Declaration:
        """The constraint of a rule. Raises Unsupported."""
        declared = self.text.declaration(name)
        if declared is None or declared.kind != "constraint":
            raise Unsupported(f"the text has no constraint {name}")
        return declared

    def _judge(self, name: str) -> Judgement:
        try:
            context = Context(self.text, self.tables, self.fixpoints.atoms)
            declared = self.constraint(name)
            places = tuple(instances(declared.body, context))
            left = self._left_to_data(declared)
            sides = [not place.fails and left(place) for place in places]
        except Unsupported as error:
            return Judgement(None, why=str(error))
        failing = tuple(place for place in places if place.fails)
        awaiting = tuple(place for place, data in zip(places, sides, strict=True) if data)
        open_ = tuple(place for place, data in zip(places, sides, strict=True) if not data and not place.fails)
        verdict = "violated" if failing else "unknown" if open_ else "obligation" if awaiting else "holds"
        return Judgement(verdict, failing or open_ or awaiting, awaiting=awaiting)

    def _left_to_data(self, constraint: Declaration) -> Callable[[Instance], bool]:
        """Data decide the constraint at a place where it is open: its text names what says so in words."""
        words = constraint.clauses.get("obligation")
        if words is None:
            return lambda _: False
        declared = self.text.declaration(words)
        if declared is None or declared.kind != "define":
            raise Unsupported(f"the text has no definition {words}")
        context = Context(self.text, self.tables, self.fixpoints.atoms)
        slots = []
        for name, sort in declared.parameters:
            slot, context = context.bound(name, sort)
            slots.append(slot)
        code = compiled(declared.body, context)

        def left(place: Instance) -> bool:
            env: list[Value] = [False] * len(context.slots)
            for slot, (_, element) in zip(slots, place.elements, strict=True):
                env[slot] = element
            truth = code(env)
            return isinstance(truth, str) and truth != ""

        return left


def _rule(it: _Asked, rule: Rule, item: Object, evaluation: Evaluation, waivers: Waivers) -> Iterator[Doubt]:
    """Doubts about one rule."""
    place = f"{it.rule_set.name} {rule.id}"
    judged = evaluation.judge(rule.constraint)
    if judged.verdict is None:
        yield Doubt(f"{place} ({rule.constraint}) is not replayed: {judged.why}", refutes=False, rule=place)
        return
    declared = evaluation.constraint(rule.constraint)
    variables = [name.lstrip("_") for name, _ in outermost(declared.body)[0]]
    awaiting = [_place(instance, variables, evaluation.facts) for instance in judged.awaiting[:LISTED]]
    derived: dict[str, object] = {
        "besides": {"obligation": awaiting} if awaiting and judged.verdict != "obligation" else {},
        "constraint": rule.constraint,
        "counted": rule.status != "advisory" and (it.entry["strict"] or rule.status not in LENIENT),
        "obligations": len(judged.awaiting),
        "statement": hashlib.sha256(declared.doc.encode()).hexdigest(),
        "status": rule.status,
    }
    yield from _equal({key: item[key] for key in derived}, derived, place)
    if item["verdict"] != judged.verdict:
        refutes = "unknown" not in (item["verdict"], judged.verdict)
        stated = f"{place} is stated as {item['verdict']}, replayed as {judged.verdict}"
        yield Doubt(stated, refutes, rule="" if refutes else place)
        return
    yield from _equal(item["total"], len(judged.places), f"{place}: total")
    violated = judged.places if judged.verdict == "violated" else ()
    places = (_place(instance, variables, evaluation.facts)["where"] for instance in violated)
    yield from _equal(item.get("waived", 0), waivers.fitting(it.rule_set.name, rule.id, places), f"{place}: waived")
    listed = [_place(instance, variables, evaluation.facts) for instance in judged.places[:LISTED]]
    if judged.verdict == "violated" and declared.clauses.get("evidence") == "order":
        listed = _with_rings(listed, judged.places, declared, evaluation)
    if len(item["findings"]) != len(listed):
        yield Doubt(f"{place}: {len(item['findings'])} places are listed, not {len(listed)}")
    for index, (one, other) in enumerate(zip(item["findings"], listed, strict=False)):
        yield from _equal(one, other, f"{place}: findings[{index}]")


def _with_rings(
    listed: list[Object], places: Sequence[Instance], declared: Declaration, evaluation: Evaluation
) -> list[Object]:
    """The findings of a rule about order: the first on each cycle names its nodes."""
    numbers = [int(place.elements[0][1]) for place in places[: len(listed)]]
    founded = evaluation.fixpoints.atoms(over_nodes(declared, evaluation.text))
    nodes = evaluation.facts.reading.nodes
    chains = rings(evaluation.facts, numbers, lambda n: founded(n) is True)
    return [
        {**item, "witness": {**item["witness"], "cycle": [nodes[n].path for n in ring]}} if ring else item
        for item, ring in zip(listed, chains, strict=True)
    ]


def _place(instance: Instance, variables: Sequence[str], facts: Facts) -> Object:
    """The finding that a certificate lists for an instance."""
    shown = [_shown_element(sort, element, facts) for sort, element in instance.elements]
    sorts = [sort for sort, _ in instance.elements]
    where = (shown[sorts.index(wanted)] for wanted in PRECEDENCE if wanted in sorts)
    return {"where": next(where, "/"), "witness": dict(zip(variables, shown, strict=False))}


def _shown_element(sort: str, element: Element, facts: Facts) -> Element:
    reading = facts.reading
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
        case "Store", int():
            return list(stores(facts))[element].place
        case "Port", int():
            return facts.port(element)
        case _:
            return element


# ---- Witnesses ----------------------------------------------------------------------------------


def _witnesses(predicate: Object, own: Sequence[Object], evaluation: Evaluation) -> Iterator[Doubt]:
    """Doubts about the witnesses: one for each constraint that holds, the one of the kind that its text asks for."""
    stated = {rule["constraint"] for rule in predicate["rules"] if rule["verdict"] == "holds"}
    if set(predicate["witnesses"]) != stated:
        yield Doubt("the witnesses are not those of the constraints that hold")
        return
    for name in sorted({rule["constraint"] for rule in own if rule["verdict"] == "holds"}):
        if evaluation.judge(name).verdict != "holds":
            continue
        try:
            declared = evaluation.constraint(name)
            if not fits(predicate["witnesses"][name], declared, evaluation.text, evaluation.facts, evaluation.tables):
                kind = declared.clauses.get("evidence", "places")
                yield Doubt(f"the witness for {name} is not the one of kind {kind}")
        except Unsupported as error:
            yield Doubt(f"the witness for {name} is not replayed: {error}", refutes=False, rule=name)
