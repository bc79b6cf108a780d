"""The outcome of a comparison as text and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sonnx.semantics.machine.inputs import type_text
from sonnx.semantics.machine.memory import type_of
from sonnx.semantics.model.elements import FLOATS
from sonnx.semantics.model.graph import Model, NodeId
from sonnx.spec.terminal import few, one_line, print_line

from .comparison import SENTENCES, Comparison, Sides, Verdict
from .entering import Entered
from .islands import MOST, Shown
from .normalizing import OF_THE_TABLE, Firing, Strength
from .searching import Witness
from .table import ApplicationId, ValueId
from .unifying import ConstantDifference, Island

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA: Final = "sonnx-equivalence/1"
Data = dict[str, "Data"] | list["Data"] | str | int | bool | None
_SHOWN: Final = 12

SOURCE: Final = (
    "EUROCAE ED-324 / SAE ARP6983, draft, glossary and 6.4.3.6.e, as quoted by the SONNX working group"
    " (onnx/working-groups, safety-related-profile/documents/analysis_of_standards: clarification_replication,.md and"
    " 2024-11-08 - Replication criteria.md)"
)
"""The only source of the words below; the standard is not published."""
EXACT: Final = (
    "ML Inference Model implemented in software or Airborne Electronic Hardware (AEH) in which no difference is"
    " introduced with regards to the ML Model semantics"
)
APPROXIMATED: Final = (
    "ML Inference Model implemented in software or Airborne Electronic Hardware (AEH) in which some differences with"
    " regards to the ML Model semantics are acceptable"
)
GAP: Final = "this maximal gap should not exceed a given value epsilon"


def criterion(comparison: Comparison) -> tuple[str, str]:
    """The criterion of replication that the outcome is evidence for, or none, and why; about the models as files, not
    about a runtime that executes one of them."""
    match comparison.verdict:
        case Verdict.EQUAL if not comparison.ports.changes:
            return "exact replication", f"evidence for `exact replication`: \u201c{EXACT}\u201d."
        case Verdict.EQUAL:
            said = "on the inputs that both accept; the changes of the interface above are to be judged beside it"
            return "exact replication", f"evidence for `exact replication` {said}: \u201c{EXACT}\u201d."
        case Verdict.ALLOWED:
            said = "each result is one that the definition allows, which need not be the same bits"
            return (
                "approximated replication",
                f"evidence for `approximated replication`, {said}: \u201c{APPROXIMATED}\u201d.",
            )
        case Verdict.REALS if isinstance(comparison.bounds, Mapping):
            what = "all inputs in this box" if comparison.box else "this input"
            said = f"the bound above is an epsilon for {what}, not for a data set"
            return "approximated replication", f"evidence for `approximated replication` (\u201c{GAP}\u201d): {said}."
        case Verdict.REALS:
            lacking = (
                "no bound is known" if comparison.bounds else "give inputs with --input or a box with --box for bounds"
            )
            said = f"it says nothing of an epsilon: \u201c{GAP}\u201d; {lacking}"
            return "approximated replication", f"in part evidence for `approximated replication`, but {said}."
        case Verdict.DIFFERS:
            return "", "evidence against `exact replication`."
        case _:
            return "", "no evidence for either criterion of replication."


def sentence(comparison: Comparison) -> str:
    """The outcome in a sentence, which says so where values were assumed to be such as a rule needs them, and where
    rules, and places that are proved alone, do not keep which NaN there is."""
    said = SENTENCES[comparison.verdict]
    sides = comparison.sides
    fired = {it.rule for it in sides.firings.values()} - OF_THE_TABLE
    floats = [it for it in sides.islands if sides.facts.content(it.island.pair[0]).element in FLOATS]
    if comparison.verdict is Verdict.EQUAL and (fired or floats):
        said += ", but that where one gives a NaN the other may give another NaN"
    count = len(sides.islands)
    if count:
        places = "one place" if count == 1 else f"{count} places"
        said += f", where {places} in which they part {'is' if count == 1 else 'are'} proved alone"
    shown = comparison.proved is not None and bool(assumed(comparison))
    return said + ("; only where what was assumed of values holds" if shown else "")


def assumed(comparison: Comparison) -> tuple[str, ...]:
    """The conditions on values that rules which fired have, and that nobody has looked at."""
    return tuple(dict.fromkeys(said for it in comparison.sides.firings.values() for said in it.assumed))


# ---- Places --------------------------------------------------------------------------------------


def nodes_of(side: Entered, application: ApplicationId) -> tuple[str, ...]:
    """The paths of the nodes of a model that are an application."""
    return tuple(side.model.nodes[n].path for n, it in side.applications.items() if it == application)


def makers_of(side: Entered, value: ValueId) -> tuple[NodeId, ...]:
    """The nodes of a model that give a value, in normal form."""
    held = {t for t, v in side.values.items() if v == value}
    return tuple(n for n, node in enumerate(side.model.nodes) if any(t in held for t in node.outputs))


def readers_of(side: Entered, value: ValueId) -> tuple[NodeId, ...]:
    """The nodes of a model that read a value, in normal form."""
    held = {t for t, v in side.values.items() if v == value}
    return tuple(n for n, node in enumerate(side.model.nodes) if any(t in held for t in node.inputs))


def place(side: Entered, value: ValueId) -> str:
    """A value by a node that gives it, or by the name of a tensor that has it; what it is where no tensor has it."""
    makers = makers_of(side, value)
    if makers:
        return side.model.nodes[makers[0]].path
    for t, v in side.values.items():
        if v == value:
            return side.model.tensors[t].path
    return "a value that a rule made"


def node_map(sides: Sides) -> tuple[tuple[NodeId, NodeId], ...]:
    """Nodes of A and of B that give one value, each pair once; those that give the same one are paired in order."""
    by_value: dict[ValueId, tuple[list[NodeId], list[NodeId]]] = {}
    for k, side in enumerate((sides.a, sides.b)):
        for n in side.applications:
            for t in side.model.nodes[n].outputs:
                if t is not None and t in side.values:
                    held = by_value.setdefault(side.values[t], ([], []))[k]
                    if n not in held:
                        held.append(n)
    pairs = {(x, y): None for one, other in by_value.values() for x, y in zip(one, other, strict=False)}
    return tuple(pairs)


def shared_values(sides: Sides) -> int:
    """The number of values that both models have."""
    return len(set(sides.a.values.values()) & set(sides.b.values.values()))


def firing_places(sides: Sides, firing: Firing) -> Sequence[str]:
    """The nodes at which a rule fired; none where it fired inside what another one made."""
    return [
        f"{name} {path}"
        for name, side in (("A", sides.a), ("B", sides.b))
        for path in nodes_of(side, firing.application)
    ]


# ---- JSON ----------------------------------------------------------------------------------------


def to_data(comparison: Comparison) -> dict[str, Data]:
    """The outcome. No number of a tensor is a JSON number, since JSON has no NaN."""
    sides, (name, said) = comparison.sides, criterion(comparison)
    return {
        "schema": SCHEMA,
        "models": [_model(model) for model in comparison.models],
        "verdict": comparison.verdict.value,
        "sentence": sentence(comparison),
        "assumed": list(assumed(comparison)),
        "demanded": comparison.demanded.name.lower(),
        "proved": None if comparison.proved is None else comparison.proved.name.lower(),
        "criterion": {"name": name, "said": said, "source": SOURCE},
        "interface": list(comparison.ports.changes),
        "apart": comparison.ports.apart,
        "notes": list(comparison.notes),
        "firings": [_firing(sides, it) for it in sides.firings.values()],
        "nodes": [[sides.a.model.nodes[n].path, sides.b.model.nodes[m].path] for n, m in node_map(sides)],
        "shared_values": shared_values(sides),
        "constants": [_constant(sides, it) for it in comparison.differences.constants],
        "islands": [_island(comparison, it) for it in comparison.differences.islands],
        "shown": [_shown(sides, it) for it in sides.islands],
        "open": sides.open_,
        "requirements": [
            {"model": name, "nodes": list(nodes_of(side, it)), "operator": sides.table.applications[it].name}
            for name, side, alone in zip("AB", (sides.a, sides.b), sides.unmatched, strict=True)
            for it in sorted(alone)
        ],
        "declared": list(sides.declared),
        "decisions": [sides.table.applications[it].name for it in comparison.decisions],
        "search": None
        if comparison.search is None
        else {
            "tried": comparison.search.tried,
            "reason": comparison.search.reason,
            "witness": None if comparison.witness is None else _witness(comparison.witness),
        },
        "bounds": _bounds(comparison),
        "box": comparison.box,
    }


def to_json(comparison: Comparison) -> str:
    """The outcome as JSON: the same comparison gives the same text."""
    return json.dumps(to_data(comparison), indent=1, sort_keys=True, allow_nan=False) + "\n"


def _bounds(comparison: Comparison) -> Data:
    if not isinstance(comparison.bounds, Mapping):
        return comparison.bounds
    return {
        name: {"least": repr(it.least), "most": repr(it.most), "apart": repr(it.apart)}
        for name, it in comparison.bounds.items()
    }


def _model(model: Model) -> Data:
    return {
        "name": model.files[0].name if model.files else "",
        "nodes": len(model.nodes),
        "files": [{"name": it.name, "sha256": it.sha256} for it in model.files],
    }


def _firing(sides: Sides, firing: Firing) -> Data:
    return {
        "rule": firing.rule,
        "strength": firing.strength.name.lower(),
        "operator": sides.table.applications[firing.application].name,
        "places": list(firing_places(sides, firing)),
        "facts": list(firing.facts),
        "assumed": list(firing.assumed),
    }


def _constant(sides: Sides, it: ConstantDifference) -> Data:
    return {
        "what": it.what,
        "places": [place(sides.a, it.pair[0]), place(sides.b, it.pair[1])],
        "differ": it.count,
        "elements": it.elements,
        "element": None if it.element is None else list(it.element),
        "values": list(it.values),
        "ulps": it.ulps,
    }


def _island(comparison: Comparison, it: Island) -> Data:
    return {**_placed(comparison.sides, it), "near": list(comparison.near.get(it.pair, ()))}


def _placed(sides: Sides, it: Island) -> dict[str, Data]:
    return {"what": it.what, "places": [place(sides.a, it.pair[0]), place(sides.b, it.pair[1])], "cuts": len(it.cuts)}


def _shown(sides: Sides, it: Shown) -> Data:
    return {
        **_placed(sides, it.island),
        "strength": it.strength.name.lower(),
        "rewrite": it.text,
        "swapped": it.swapped,
        "laws": list(it.laws),
    }


def _witness(it: Witness) -> Data:
    return {
        "label": it.label,
        "inputs": {name: type_text(type_of(value)) for name, value in it.inputs.items()},
        "output": it.output,
        "element": None if it.element is None else list(it.element),
        "values": list(it.values),
        "differ": it.elements[0],
        "elements": it.elements[1],
        "stuck": list(it.stuck),
        "beyond_rounding": it.beyond,
    }


# ---- Text ----------------------------------------------------------------------------------------


def write(console: Console, comparison: Comparison) -> None:
    """The outcome as text."""
    for line in lines(comparison):
        print_line(console, one_line(line))


def lines(comparison: Comparison) -> Sequence[str]:
    """The outcome in lines."""
    sides = comparison.sides
    made = []
    for name, model in zip("AB", comparison.models, strict=True):
        file = f"{model.files[0].name} " if model.files else ""
        digest = f", sha256 {model.files[0].sha256}" if model.files else ""
        made.append(f"{name}        {file}({len(model.nodes)} nodes{digest})")
    made.append(f"verdict  {comparison.verdict.name}: {sentence(comparison)}.")
    made += _why(comparison)
    for it in sides.islands:
        where = f"{place(sides.a, it.island.pair[0])} of A, {place(sides.b, it.island.pair[1])} of B"
        made.append(f"island   {it.island.what}: {where}; proved ({it.strength.name.lower()}) as a rewrite of its own:")
        made += [f"         {line}" for line in it.text.splitlines()]
        made += [f"         by {law}" for law in it.laws]
    made += [f"changed  {it}" for it in comparison.ports.changes]
    made += [f"note     {it}" for it in comparison.notes]
    made += [f"assumed  of values: {it}" for it in assumed(comparison)]
    counts = Counter((it.rule, it.strength) for it in sides.firings.values())
    made += [
        f"rule     {name} ({strength.name.lower()}), {count} times"
        for (name, strength), count in sorted(counts.items(), key=lambda it: (-it[0][1], it[0][0]))
    ]
    pairs = len(node_map(sides))
    made.append(
        f"values   {shared_values(sides)} of both; {pairs} nodes of {len(sides.a.applications)} of A and"
        f" {len(sides.b.applications)} of B give the same"
    )
    if isinstance(comparison.bounds, Mapping):
        where = f"for all inputs with {comparison.box}" if comparison.box else "on the given input"
        made += [
            f"bound    {name}: at most {it.apart:.6g} apart, both in [{it.least:.6g}, {it.most:.6g}], {where}"
            for name, it in comparison.bounds.items()
        ]
    elif comparison.bounds:
        made.append(f"bound    none: {comparison.bounds}")
    made.append(f"evidence {criterion(comparison)[1]}")
    made.append(f"source   {SOURCE}.")
    return made


def _why(comparison: Comparison) -> list[str]:
    """The places where the two part, and the witness."""
    sides, made = comparison.sides, list[str]()
    if comparison.ports.apart:
        made.append(f"apart    {comparison.ports.apart}")
    if comparison.proved is None:
        for it in comparison.differences.constants[:_SHOWN]:
            where = place(sides.a, it.pair[0]), place(sides.b, it.pair[1])
            ulps = "" if it.ulps is None else f", at most {it.ulps} ulp"
            at = ""
            if it.element is not None:
                at = f"; at [{', '.join(map(str, it.element))}] it is {it.values[0]} and {it.values[1]}"
            made.append(
                f"constant {it.what} differs in {it.count} of {it.elements} elements{ulps}: {where[0]} of A,"
                f" {where[1]} of B{at}"
            )
        for island in comparison.differences.islands[:_SHOWN]:
            places = f"{place(sides.a, island.pair[0])} of A, {place(sides.b, island.pair[1])} of B"
            made.append(f"island   {island.what}: {places} ({len(island.cuts)} common values below)")
            if island.pair in comparison.near:
                made.append("         it is as in {}, but {}".format(*comparison.near[island.pair]))
        if sides.open_:
            made.append(
                f"open     no proof of a place where they part, of at most {MOST} applications, in the time of the"
                f" search: {sides.open_}"
            )
        for name, side, alone in zip("AB", (sides.a, sides.b), sides.unmatched, strict=True):
            if alone:
                found = [path for it in sorted(alone) for path in nodes_of(side, it)] or ["a node that a rule made"]
                made.append(f"requires {name} alone may get stuck at {few(found, _SHOWN)}")
        made += [f"declared {it}" for it in sides.declared]
        for number in comparison.decisions[:_SHOWN]:
            deciding = [path for side in (sides.a, sides.b) for path in nodes_of(side, number)]
            made.append(f"decides  {sides.table.applications[number].name} may flip by rounding: {few(deciding, 2)}")
        count = len(comparison.differences.constants) + len(comparison.differences.islands)
        if count > 2 * _SHOWN:
            made.append(f"and more: {count} places in all (--format json)")
    search = comparison.search
    if search is not None and search.witness is not None:
        made += told(search.witness, comparison.demanded)
    elif search is not None:
        reason = f" ({search.reason})" if search.reason else ""
        both = f", both stuck on {search.stuck}" if search.stuck else ""
        alike = f"{search.tried} inputs on the machine, the models were alike{both}"
        made.append(f"searched {alike if search.tried else 'nothing'}{reason}")
    return made


def told(it: Witness, demanded: Strength) -> list[str]:
    """A witness in lines."""
    inputs = ", ".join(f"{name}: {type_text(type_of(value))}" for name, value in it.inputs.items())
    made = [f"witness  {it.label} ({inputs}), run on the machine through both models"]
    if it.stuck != ("", ""):
        return [
            *made,
            *(f"         {name} is stuck: {said}" for name, said in zip("AB", it.stuck, strict=True) if said),
        ]
    at = "" if it.element is None else f"[{', '.join(map(str, it.element))}]"
    said = f"{it.elements[0]} of {it.elements[1]} elements differ"
    made.append(f"         {it.output}{at} is {it.values[0]} in A and {it.values[1]} in B; {said}")
    if demanded is not Strength.EXACT:
        explained = "rounding may explain it: no evidence against equality over the reals"
        made.append(f"         {'no rounding explains it' if it.beyond else explained}")
    return made
