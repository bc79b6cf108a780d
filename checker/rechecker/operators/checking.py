"""The rules of a rule set that collects requirements of operators: what a certificate states, against what is derived.

A certificate names, for each rule, the nodes at which it is not simply met, with what decides it there: nothing
(violated), free sizes (conditional, with sizes at which it fails), data (obligation). All of it is compared with what
follows from the texts here. What is not derived here is said, and never taken on trust.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..form import spelled
from .deciding import Judged, at_which, formula
from .formulas import Formula, Int, base_symbols, both, formula_symbols, truth_at
from .knowledge import SAID, SHAPES, TYPES, Derivation
from .proving import entails
from .values import Listed, Open, Tensor

Object = Mapping[str, Any]

DEFINED, MADE, INFERRED = "defined", "data-shapes", "inference"
"""The rules that are no statement of an operator's text."""
SENTENCES = {
    DEFINED: "Every node applies an operator that the specification defines, and can run.",
    MADE: "A shape that data decide is one for which the nodes behind have a result.",
    **SAID,
}
WORST = ("violated", "unknown", "conditional", "obligation", "holds")
LISTED = 100
"""The most places of one verdict that are listed."""


@dataclass(frozen=True, slots=True)
class Objection:
    """A fault of a rule (`refutes`), or what of it is not derived here."""

    rule: str
    reason: str
    refutes: bool = True


@dataclass(frozen=True, slots=True)
class _Place:
    """A place that a certificate names."""

    node: str
    verdict: str
    witness: Object


def objections(rules: Sequence[Object], kind: str, derivation: Derivation) -> Iterator[Objection]:
    """Objections to the rules of one rule set. kind: what it collects, require or restrict."""
    paths = [node.path for node in derivation.graph.reading.nodes]
    stated = {str(rule["id"]): rule for rule in rules}
    unreached = _never_reached(derivation)
    derived = {
        rule: [j for j in judged if paths[j.node] in listed or j.node not in unreached]
        for rule, judged in derivation.judged.items()
        if derivation.sentences[rule][0] == kind
        for listed in ({place.node for place in _places(stated[rule])} if rule in stated else set(),)
    }
    if len(stated) != len(rules):
        yield Objection("", "a rule is listed twice")
    doubtful = {j.node for judged in derivation.judged.values() for j in judged if j.verdict in ("obligation", "open")}
    always = {DEFINED, MADE, SHAPES, TYPES} if kind == "require" else set()
    for rule in sorted({rule for rule, judged in derived.items() if judged} | always):
        if rule not in stated:
            sure = rule in always or any(j.node not in doubtful for j in derived[rule])
            yield Objection(rule, "the model has nodes to which it applies, and it is not listed", refutes=sure)
    needed = _needed(stated.get(MADE))
    owed = _owed(stated.get(SHAPES), derived.get(SHAPES, []), paths)
    for rule, item in stated.items():
        own = {"constraint": rule, "counted": True, "status": "current"}
        if rule == INFERRED or any(item[key] != value for key, value in own.items()):
            yield Objection(rule, "it is no rule that is counted")
            continue
        yield from _counts(rule, item)
        if rule not in derived and rule not in (DEFINED, MADE, SHAPES, TYPES):
            yield Objection(rule, "no node is asked for it here", refutes=any(True for _ in _places(item)))
            continue
        sentence = derivation.sentences[rule][1] if rule in derived else SENTENCES.get(rule)
        if sentence is not None and item["statement"] != hashlib.sha256(sentence.encode()).hexdigest():
            yield Objection(rule, "its sentence is another one")
        if rule == DEFINED:
            yield from _defined(item, derivation, paths)
        elif rule == MADE:
            yield from _made(item, derived, paths, derivation)
        else:
            yield from _rule(rule, item, derived.get(rule, []), needed, owed, derivation, paths)


def _places(item: Object) -> Iterator[_Place]:
    """The places that a rule lists."""
    for finding in item["findings"]:
        witness = finding["witness"]
        yield _Place(str(finding["where"]), str(item["verdict"]), witness)
    for verdict, findings in item["besides"].items():
        for finding in findings:
            yield _Place(str(finding["where"]), str(verdict), finding["witness"])


def _needed(item: Object | None) -> frozenset[str]:
    """The nodes whose need of a shape is listed at the node that makes it."""
    return frozenset(path for place in (() if item is None else _places(item)) for path in _behind(place))


def _behind(place: _Place) -> Sequence[str]:
    """The nodes that need what a node makes, each once; none where something else is stated."""
    listed = place.witness.get("needed_by")
    if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
        return ()
    return listed if len(set(listed)) == len(listed) else ()


Owed = Mapping[Formula, Sequence[Judged]]


def _owed(item: Object | None, judged: Sequence[Judged], paths: Sequence[str]) -> Owed:
    """The obligations that are listed on the shape that a node itself gives."""
    listed = {place.node for place in (() if item is None else _places(item)) if place.verdict == "obligation"}
    owed: dict[Formula, list[Judged]] = {}
    for one in judged:
        if one.verdict == "obligation" and one.goal is not None and paths[one.node] in listed:
            owed.setdefault(one.goal, []).append(one)
    return owed


def _counts(rule: str, item: Object) -> Iterator[Objection]:
    """Objections to what is counted of a rule: all places are listed up to a hundred, obligations among them."""
    listed, total = len(item["findings"]), int(item["total"])
    if total < listed or (total > listed and listed != LISTED) or (listed and item["verdict"] == "holds"):
        yield Objection(rule, f"{listed} places are listed, {total} are stated")
    owed = total if item["verdict"] == "obligation" else len(item["besides"].get("obligation", ()))
    beyond = len(item["besides"].get("obligation", ())) == LISTED and item["obligations"] > LISTED
    if item["obligations"] != owed and not beyond:
        yield Objection(rule, f"{item['obligations']} obligations are stated, {owed} are listed")
    if not set(item["besides"]) <= {"conditional", "obligation"} - {item["verdict"]}:
        yield Objection(rule, "milder places are listed under another verdict")
    if not all(item["besides"].values()):
        yield Objection(rule, "a verdict is named that no place has")


def _cut(stated: Mapping[str, Sequence[_Place]], own: Sequence[str]) -> Mapping[str, int]:
    """For each verdict of which as many places are listed as a certificate lists, how many nodes that list covers."""
    last: dict[str, list[int]] = {}
    for number, path in enumerate(own):
        for place in stated.get(path, ()):
            last.setdefault(place.verdict, []).append(number)
    return {verdict: max(numbers) for verdict, numbers in last.items() if len(numbers) >= LISTED}


# ---- One statement of a text --------------------------------------------------------------------


def _rule(
    rule: str,
    item: Object,
    judged: Sequence[Judged],
    needed: frozenset[str],
    owed: Owed,
    derivation: Derivation,
    paths: Sequence[str],
) -> Iterator[Objection]:
    own: dict[str, list[Judged]] = {}
    for one in judged:
        own.setdefault(paths[one.node], []).append(one)
    stated: dict[str, list[_Place]] = {}
    for place in _places(item):
        stated.setdefault(place.node, []).append(place)
    for path in stated:
        if path not in own:
            yield Objection(rule, f"at {path} it is not asked", refutes=path not in paths)
    cut, made = _cut(stated, list(own)), _made_sizes(derivation)
    for number, (path, ours) in enumerate(own.items()):
        beyond = frozenset(verdict for verdict, last in cut.items() if number > last)
        elsewhere = path in needed or all(_asked_before(j, owed) for j in ours if j.verdict == "obligation")
        yield from _node(rule, path, ours, stated.get(path, []), elsewhere, beyond, made, derivation)
    yield from _listed(rule, item, own)
    worst = _worst(judged)
    if worst != item["verdict"]:
        decided = worst in ("violated", "conditional", "holds") and item["verdict"] in (
            "violated",
            "conditional",
            "holds",
        )
        decided = decided and not (item["verdict"] == "violated" and worst == "conditional" and _exclusive(derivation))
        yield Objection(rule, f"it is stated as {item['verdict']}, derived as {worst}", refutes=decided)


def _listed(rule: str, item: Object, own: Mapping[str, Sequence[Judged]]) -> Iterator[Objection]:
    """Objections to the order of the places, and to how many there are beyond those that are listed."""
    position = {path: number for number, path in enumerate(own)}
    numbered = [ours[0].node for ours in own.values()]
    for places in (item["findings"], *item["besides"].values()):
        numbers = [position[path] for place in places if (path := str(place["where"])) in position]
        if numbers != sorted(numbers):
            yield Objection(rule, "the places are not in their order", refutes=numbered == sorted(numbered))
    total, verdict = int(item["total"]), "open" if item["verdict"] == "unknown" else item["verdict"]
    if total >= LISTED:
        nodes = [sum(j.verdict == verdict for j in ours) for ours in own.values()]
        if total < sum(count > 0 for count in nodes):
            yield Objection(rule, f"{total} places are stated, and there are more")
        elif total > sum(nodes) and verdict != "obligation":
            yield Objection(rule, f"{total} places are stated, derived are {sum(nodes)}", refutes=False)


def _asked_before(judged: Judged, owed: Owed) -> bool:
    """A node before owes the very same, where no more holds than here."""
    return judged.goal is not None and any(
        one.node < judged.node and set(one.facts) <= set(judged.facts) for one in owed.get(judged.goal, ())
    )


def _worst(judged: Sequence[Judged]) -> str:
    verdicts = {"unknown" if one.verdict == "open" else one.verdict for one in judged}
    return next((v for v in WORST if v in verdicts), "holds")


def _node(
    rule: str,
    path: str,
    ours: Sequence[Judged],
    theirs: Sequence[_Place],
    elsewhere: bool,
    beyond: frozenset[str],
    made: frozenset[str],
    derivation: Derivation,
) -> Iterator[Objection]:
    """Objections to what is stated of one node. made: the sizes that data decide. elsewhere: what it leaves to data is
    listed at another node. beyond: the verdicts whose places are listed up to a node in front."""
    said = {place.verdict for place in theirs}
    have = {one.verdict for one in ours if one.verdict != "holds"}
    violated = "violated" in have
    if violated and "violated" not in said | beyond:
        yield Objection(rule, f"it is violated at {path}, which is not stated")
    if "violated" in said and not violated:
        sure = not have & {"obligation", "open"} and not _exclusive(derivation)
        yield Objection(rule, f"it is stated as violated at {path}, derived as {_words(have)}", refutes=sure)
        return
    if "conditional" in have:
        one = next(j for j in ours if j.verdict == "conditional")
        if "conditional" not in said | beyond and not violated:
            yield Objection(rule, f"at {path} it fails for {_sizes(one.fails)}, which is not stated")
    elif "conditional" in said:
        yield Objection(rule, f"it is stated as conditional at {path}, derived as {_words(have)}", "open" not in have)
    for place in theirs:
        if place.verdict != "conditional":
            yield from _bare(rule, place)
    free = [place for place in theirs if place.verdict == "conditional"]
    if free and "conditional" in have:
        yield from _conditional(rule, free, [j for j in ours if j.verdict == "conditional"], derivation)
    here = [j for j in ours if j.verdict == "obligation" and not (elsewhere and _of_sizes(j, made))]
    if here and "obligation" not in said | beyond and not violated:
        reason = here[0].reason
        yield Objection(rule, f"at {path} data decide it, as far as it is derived here ({reason})", refutes=False)
    if "obligation" in said and "obligation" not in have:
        yield Objection(rule, f"it is stated as an obligation at {path}, derived as {_words(have)}", refutes=False)
    if "open" in have and not violated and not ("unknown" in said | beyond and _undefined(ours)):
        reason = next(j.reason for j in ours if j.verdict == "open")
        yield Objection(rule, f"at {path} it is not derived here: {reason}", refutes=False)
    elif "unknown" in said and "open" not in have:
        yield Objection(rule, f"it is left open at {path}, derived as {_words(have)}", refutes=False)


def _exclusive(derivation: Derivation) -> bool:
    """The conditions of the model exclude each other: the one that closes the set is then violated."""
    judged = [j for js in derivation.judged.values() for j in js if j.verdict == "conditional" and j.goal is not None]
    facts = [*(j.goal for j in judged if j.goal is not None), *(fact for j in judged for fact in j.facts)]
    return entails(list(dict.fromkeys(facts)), False)


def _of_sizes(judged: Judged, made: frozenset[str]) -> bool:
    """An obligation is about sizes of tensors, `made`, which the node that makes them can see to."""
    if judged.goal is None:
        return True
    data = {symbol.key for symbol in formula_symbols(judged.goal) if symbol.kind == "data"}
    return bool(data) and data <= made


def _made_sizes(derivation: Derivation) -> frozenset[str]:
    """The keys of the symbols of data in the sizes of tensors."""
    return frozenset(key for content in derivation.contents.values() for key in _data_sizes(content))


def _data_sizes(content: object) -> Iterator[str]:
    """The keys of the symbols of data in the sizes of a tensor, in the length of a list and the sizes of its forms."""
    match content:
        case Tensor(shape=shape):
            sizes: Sequence[Int] = shape or ()
        case Listed(length=length, forms=forms):
            sizes = (length,)
            for form in forms:
                yield from _data_sizes(form)
        case _:
            sizes = ()
    for size in sizes:
        yield from (symbol.key for symbol in base_symbols(size) if symbol.kind == "data")


def _makes_sizes(n: int, derivation: Derivation) -> bool:
    """A node gives a tensor with a size that data decide, as far as it is known here."""
    given = _given_sizes(n, derivation)
    return given is None or bool(given)


def _is_maker(n: int, needs: Sequence[Judged], derivation: Derivation) -> bool:
    """A size that is needed is one that a node makes: it gives a tensor that has it, and no node in front does.
    Where it is not derived what is needed, or what the node gives, any node will do.
    """
    goals = [j.goal for j in needs if j.verdict == "obligation" or j.goal is not None]
    made = _given_sizes(n, derivation)
    if made is None or not goals or None in goals:
        return True
    needed = {symbol.key for goal in goals if goal is not None for symbol in formula_symbols(goal)}
    earlier = [_given_sizes(m, derivation) or frozenset() for m in _read_from(n, derivation)]
    return bool((needed & made) - frozenset().union(*earlier))


def _given_sizes(n: int, derivation: Derivation) -> frozenset[str] | None:
    """The keys of the symbols of data in the sizes of what a node gives; None where a shape is not known."""
    contents = [derivation.contents.get(t) for t in derivation.graph.writes[n]]
    if any(not isinstance(it, Tensor | Listed) or (isinstance(it, Tensor) and it.shape is None) for it in contents):
        return None
    return frozenset(key for content in contents for key in _data_sizes(content))


def _read_from(n: int, derivation: Derivation) -> set[int]:
    """The nodes that what a node reads comes from; within a body those that what its holder reads comes from, too."""
    graph = derivation.graph

    def step(m: int) -> Iterable[int]:
        holder = graph.reading.graphs[graph.reading.nodes[m].graph].holder
        read = [*graph.reads[m], *([] if holder is None else graph.reads[holder])]
        return (w for t in read for w in graph.writers[t])

    return _reached({n}, step) - {n}


def _in_front(n: int, derivation: Derivation) -> set[int]:
    """The nodes that what a node reads comes from, with those in bodies and around them."""
    graph = derivation.graph

    def step(m: int) -> Iterable[int]:
        yield from (w for t in graph.reads[m] for w in graph.writers[t])
        holder = graph.reading.graphs[graph.reading.nodes[m].graph].holder
        yield from () if holder is None else (holder,)
        yield from (inner for body in graph.reading.nodes[m].bodies for inner in graph.reading.graphs[body].nodes)

    return _reached({n}, step)


def _never_reached(derivation: Derivation) -> set[int]:
    """The nodes behind one that has no result in any run, of which nothing need be said. A node of a cycle is not
    behind itself. A restriction that is violated stops no run, nor does a declaration that is not met."""
    failing = {
        j.node
        for rule, judged in derivation.judged.items()
        if rule not in SAID and derivation.sentences[rule][0] == "require"
        for j in judged
        if j.verdict == "violated"
    }
    behind = _behind_nodes(failing, derivation)
    return behind - {n for n in failing & behind if n in _behind_nodes({n}, derivation)}


def _behind_nodes(nodes: set[int], derivation: Derivation) -> set[int]:
    """The nodes that read, directly or through others, what these nodes write."""
    graph = derivation.graph
    return _reached(nodes, lambda n: (m for t in graph.writes[n] for m in graph.readers[t]))


def _reached(nodes: set[int], step: Callable[[int], Iterable[int]]) -> set[int]:
    """The nodes that are reached from some nodes by one step or more."""
    seen, waiting = set[int](), list(nodes)
    while waiting:
        new = set(step(waiting.pop())) - seen
        seen |= new
        waiting += new
    return seen


def _undefined(ours: Sequence[Judged]) -> bool:
    """It is open since an operator has no text."""
    return all(j.reason.startswith("the specification does not define") for j in ours if j.verdict == "open")


def _words(have: set[str]) -> str:
    return " and ".join(sorted(have)) or "holds"


def _sizes(at: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in at.items())


def _bare(rule: str, place: _Place, *more: str) -> Iterator[Objection]:
    """Objections to a witness that should say nothing but where."""
    if place.witness.get("n") != place.node or not set(place.witness) <= {"n", *more}:
        yield Objection(rule, f"the witness at {place.node} says more than it should")


def _conditional(
    rule: str, places: Sequence[_Place], ours: Sequence[Judged], derivation: Derivation
) -> Iterator[Objection]:
    """Objections to the conditional places of one node: each fails somewhere, and together they are what is needed."""
    for place in places:
        yield from _witness(rule, place, ours, derivation)
    conditions = [spelled(place.witness.get("condition")) for place in places]
    if len(set(conditions)) < len(conditions):
        yield Objection(rule, f"{places[0].node} is listed twice with one condition")
    if len(places) > len(ours):
        many = f"{places[0].node} is listed {len(places)} times, derived are {len(ours)} conditions"
        yield Objection(rule, many, refutes=False)
    yield from _needs(rule, places, ours, derivation)


def _witness(rule: str, place: _Place, ours: Sequence[Judged], derivation: Derivation) -> Iterator[Objection]:
    """The sizes at which a requirement fails, tried; and what is stated to be needed."""
    at = place.witness.get("sizes")
    due = set(place.witness) == {"n", "sizes", "condition"} and place.witness["n"] == place.node
    if not due or not isinstance(at, dict):
        yield Objection(rule, f"the witness at {place.node} is not of the form that is due")
        return
    for name, value in at.items():
        symbol = derivation.sizes.get(name)
        if symbol is None or type(value) is not int or value < (symbol.least or 0):
            yield Objection(rule, f"at {place.node} {name} = {value} is no size of the inputs")
            return
        if symbol.most is not None and value > symbol.most:
            yield Objection(rule, f"at {place.node} {name} = {value} is too large")
            return
    if not at:
        yield Objection(rule, f"at {place.node} no sizes are stated at which it fails", refutes=False)
    else:
        keyed = {derivation.sizes[name].key: value for name, value in at.items()}
        try:
            fails = any(j.goal is not None and not truth_at(j.goal, keyed) and _kept(j.facts, keyed) for j in ours)
        except KeyError as problem:
            yield Objection(rule, f"at {place.node} a size is missing in the witness: {problem}", refutes=False)
            return
        if not fails:
            yield Objection(rule, f"at {place.node} it does not fail for {_sizes(at)}")


def _needs(rule: str, places: Sequence[_Place], ours: Sequence[Judged], derivation: Derivation) -> Iterator[Objection]:
    """The conditions that are stated to be needed at a node, which together are that of the text."""
    place = places[0]
    try:
        stated = both(*(formula(place.witness.get("condition"), derivation.sizes) for place in places))
    except Open as problem:
        yield Objection(rule, f"at {place.node}: {problem.reason}", refutes=False)
        return
    goal, facts = both(*(j.goal for j in ours if j.goal is not None)), [f for j in ours for f in j.facts]
    if entails([*facts, stated], goal) and entails([*facts, goal], stated):
        return
    known = both(*facts)
    at = at_which(both(stated, goal, known), lambda at: _kept(facts, at) and truth_at(stated, at) != truth_at(goal, at))
    if at is None:
        yield Objection(rule, f"the condition at {place.node} is not proved to be that of the text", refutes=False)
    else:
        yield Objection(rule, f"the condition at {place.node} is not that of the text: they differ for {_sizes(at)}")


def _fails(facts: Sequence[Formula], goal: Formula, at: Mapping[str, int]) -> bool:
    """The goal fails for sizes for which the facts hold."""
    return _kept(facts, at) and not truth_at(goal, at)


def _kept(facts: Sequence[Formula], at: Mapping[str, int]) -> bool:
    """The facts hold for the sizes, as far as they say it."""
    for fact in facts:
        try:
            if not truth_at(fact, at):
                return False
        except KeyError:
            continue
    return True


# ---- The other rules ----------------------------------------------------------------------------


def _defined(item: Object, derivation: Derivation, paths: Sequence[str]) -> Iterator[Objection]:
    own = [paths[n] for n in (*derivation.undefined, *derivation.skipped)]
    if item["besides"]:
        yield Objection(DEFINED, "places are stated besides")
    stated = [place.node for place in _places(item)]
    for place in _places(item):
        yield from _bare(DEFINED, place)
    if int(item["total"]) != len(own) or stated != own[: len(stated)] or (len(stated) < len(own) and len(stated) < 100):
        yield Objection(DEFINED, f"{item['total']} nodes are stated, {len(own)} have no meaning or never run")
    if item["verdict"] != ("unknown" if own else "holds"):
        yield Objection(DEFINED, f"it is stated as {item['verdict']}")


def _made(
    item: Object, derived: Mapping[str, Sequence[Judged]], paths: Sequence[str], derivation: Derivation
) -> Iterator[Objection]:
    """The obligations on shapes that data decide: each is needed by a node whose requirement data decide."""
    left = [j for judged in derived.values() for j in judged if j.verdict in ("obligation", "open")]
    made = _made_sizes(derivation)
    needing = {paths[j.node]: j.node for j in left if j.verdict == "open" or _of_sizes(j, made)}
    known = {path: n for n, path in enumerate(paths)}
    if item["besides"]:
        yield Objection(MADE, "places are stated besides")
    for place in _places(item):
        yield from _bare(MADE, place, "needed_by")
        if place.node not in known:
            yield Objection(MADE, f"there is no node {place.node}")
            continue
        if not _makes_sizes(known[place.node], derivation):
            yield Objection(MADE, f"no size that {place.node} makes depends on data here", refutes=False)
        if not _behind(place):
            yield Objection(MADE, f"no node needs what {place.node} makes")
        for path in _behind(place):
            if path not in needing:
                yield Objection(MADE, f"at {path} no requirement depends on data", refutes=False)
            elif not _is_maker(known[place.node], [j for j in left if j.node == needing[path]], derivation):
                yield Objection(MADE, f"{place.node} does not make the size that {path} needs", refutes=False)
            elif known[place.node] not in _in_front(needing[path], derivation):
                yield Objection(MADE, f"{path} reads nothing that comes from {place.node}")
    if item["verdict"] != ("obligation" if item["findings"] else "holds"):
        yield Objection(MADE, f"it is stated as {item['verdict']}")


# ---- For which sizes ----------------------------------------------------------------------------


def condition_objections(terms: Sequence[object], kind: str, derivation: Derivation) -> Iterator[Objection]:
    """Objections to the conditions on sizes for which all that is required, or restricted, is stated to hold."""
    required = [j for rule, js in derivation.judged.items() if derivation.sentences[rule][0] == kind for j in js]
    judged = [j for j in required if j.verdict == "conditional"]
    goals = [j.goal for j in judged if j.goal is not None]
    if any(j.verdict == "violated" for j in required):
        if len(terms) != 1 or terms[0] is not False:
            yield Objection("", "sizes are stated for which the model is well formed, and there are none")
        return
    if len({spelled(term) for term in terms}) < len(terms):
        yield Objection("", "a condition is stated twice")
    try:
        stated = [formula(term, derivation.sizes) for term in terms]
    except Open as problem:
        yield Objection("", problem.reason, refutes=False)
        return
    for j in judged:
        if j.goal is None or entails([*stated, *j.facts], j.goal):
            continue
        at = at_which(both(*stated, j.goal), partial(_fails, stated, j.goal))
        where = derivation.graph.reading.nodes[j.node].path
        if at is None:
            yield Objection("", f"that the stated conditions suffice for {where} is not proved here", refutes=False)
        else:
            yield Objection("", f"the stated conditions do not suffice: {where} needs more at {_sizes(at)}")
    for one in stated:
        if entails(goals, one):
            continue
        at = at_which(both(one, *goals), partial(_fails, goals, one))
        if at is None:
            yield Objection("", "that a stated condition is needed is not proved here", refutes=False)
        else:
            yield Objection("", f"a condition is stated that nothing needs: {_sizes(at)} will do")
