"""A certificate about two models: what it says is done again, and what is shown by that is said."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from sonnx.semantics.errors import Unsupported

from .. import files
from ..facts import external_locations
from ..operators import OVERRIDABLE
from ..operators.text import Library, declarations, library, pieces
from ..outcomes import Outcome, Recheck
from ..paths import quoted
from ..reader import read
from ..text import Text, grammar, texts
from .alike import alike
from .graphs import opened
from .matching import Unshown, open_reason
from .replay import Replay, leads_to, type_bytes
from .rules import STRENGTHS

Object = Mapping[str, Any]
FOLDERS: Final = ("5-operators/", "7-transforms/")
SAID: Final = {
    "exact": "the same bits, but that a NaN may be another NaN",
    "allowed": "results that the definition allows where A gives one of them",
    "reals": "results that are equal over the real numbers, wherever all that both compute has a value there; rounding"
    " may make them differ, and what hangs on it",
}
TOOLS: Final = ["onnx", "sonnx"]


def judged(statement: Object, model: Path, other: Path) -> Recheck:
    """The outcome. Raises ModelError for files that cannot be read at all."""
    try:
        return Recheck(*_judged(statement, (model, other)))
    except Unshown as problem:
        outcome = Outcome.REFUTED if problem.refutes else Outcome.NOT_CHECKED
        return Recheck(outcome, (_line(problem.reason),))
    except Unsupported as problem:
        return Recheck(Outcome.NOT_CHECKED, (_line(f"it cannot be replayed: {problem}"),))
    except (RecursionError, MemoryError) as problem:
        return Recheck(Outcome.NOT_CHECKED, (f"it is too large to be replayed here ({type(problem).__name__})",))


def _line(text: str) -> str:
    return " ".join(text.encode("ascii", "backslashreplace").decode("ascii").split())[:400]


def _judged(
    statement: Object, paths: Sequence[Path]
) -> tuple[Outcome, tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    predicate: Object = statement["predicate"]
    _files_are(statement, paths)
    if sorted(predicate["tools"]) != TOOLS:
        raise Unshown("tools are not those of such a certificate")
    text = texts()
    known = library_of(text)
    both = predicate["kind"] == "equiv"
    if len(predicate["sequences"]) != 1 + both:
        raise Unshown("there are more or fewer sequences of steps than models that are changed")
    replays = []
    for path, sequence in zip(paths, predicate["sequences"], strict=False):
        state = opened(path, known, fixed=sequence["fixed"])
        replay = Replay(state, predicate["rules"], _drawn(text))
        replay.run(sequence["steps"])
        replays.append(replay)
    if both:
        if predicate["names"]:
            raise Unshown("names are given to tensors of no model")
        alike(replays[0].state, replays[1].state, _drawn(text))
        if predicate["strength"] == "allowed" and "allowed" in replays[1].claims:
            raise open_reason("what B comes to is allowed of B; B itself need not give what the definition of A allows")
    else:
        leads_to(replays[0].state, paths[1], predicate["names"])
    _stated(predicate, replays, text)
    trusted = tuple(it for replay in replays for it in replay.trusted)
    shown = tuple(_shown(predicate, replays, paths))
    reasons = tuple(_line(f"taken on trust: {it}") for it in trusted)
    return (Outcome.NOT_CHECKED if trusted else Outcome.CONFIRMED), reasons, (), (), shown


def _files_are(statement: Object, paths: Sequence[Path]) -> None:
    """The files are those that the certificate is about."""
    listed: dict[str, list[tuple[str, str]]] = {"A": [], "B": []}
    for entry in statement["subject"]:
        side, _, name = entry["name"].partition("/")
        if side not in listed:
            raise Unshown("a file is of neither model")
        listed[side].append((name, entry["digest"]["sha256"]))
    for (side, entries), path in zip(listed.items(), paths, strict=True):
        data = files.content(path)
        if not entries or entries[0][1] != hashlib.sha256(data).hexdigest():
            raise Unshown(f"model {side} is not the one that was certified: its SHA-256 differs")
        named = external_locations(read(files.parse(data)[1]))
        if [name for name, _ in entries[1:]] != named:
            raise Unshown(f"the certificate does not list the files of external data that model {side} names")
        for name, digest in entries[1:]:
            if files.digest(files.inside(path.parent, name), quoted(name)) != digest:
                raise Unshown(f"the external data {quoted(name)} are not those that were certified: SHA-256 differs")


@cache
def library_of(text: Text) -> Library:
    """The operators and rewrites, with texts of a user."""
    made = library(grammar(), {n: it for n, it in text.contents.items() if n.startswith(FOLDERS) or n in text.own})
    twice = made.defined_twice()
    if twice:
        raise Unsupported(f"two texts of the specification define {twice}")
    return made


@cache
def theorems_of(text: Text) -> Library:
    """The theorems of part 6."""
    return library(grammar(), {n: it for n, it in text.contents.items() if n.startswith("6-properties/")})


@cache
def _drawn(text: Text) -> frozenset[str]:
    """The primitives whose results are drawn."""
    found = set()
    for declaration in declarations(text.contents["primitives.sonnx"]):
        words = pieces(declaration)
        if words[:1] == ["fun"] and "drawn" in words:
            found.add(words[1])
    return frozenset(found)


def _stated(predicate: Object, replays: Sequence[Replay], text: Text) -> None:
    """What the certificate says besides the steps is what they come to."""
    claims = {claim for replay in replays for claim in replay.claims}
    strength = max(claims, key=STRENGTHS.index, default="exact")
    if predicate["strength"] != strength:
        raise Unshown(
            f"the strength is stated as {predicate['strength']}; by the rules that were used it is {strength}"
        )
    used = {name for replay in replays for name in replay.used}
    if set(predicate["rules"]) != used:
        raise Unshown("the rules are not those that were used")
    theorems = {name: theorems_of(text).theorem(name) for replay in replays for name in replay.theorems}
    if "" in theorems.values():
        raise open_reason("a theorem that allows a step is not in the text that is installed")
    if predicate["theorems"] != theorems:
        raise Unshown("the theorems are not those that allow the steps, as the text that is installed has them")
    stated = set(predicate["assumed"])
    missing = {it for replay in replays for it in replay.assumed} - stated
    if missing or len(stated) < len(predicate["assumed"]):
        raise Unshown(f"what is assumed of values is not stated once each: {', '.join(sorted(missing))}")
    if not stated <= {it for replay in replays for it in replay.sentences}:
        raise Unshown("something is assumed of values that no rule assumes")


def _shown(predicate: Object, replays: Sequence[Replay], paths: Sequence[Path]) -> list[str]:
    """What is shown, and what it rests on."""
    both = predicate["kind"] == "equiv"
    when = "runs of A and B that come to their end" if both else "each run of A that comes to its end"
    first = f"shown: for the same inputs, B gives {SAID[predicate['strength']]}, as A does, in {when}"
    lines = [first + ", where tensors are as declared, and what is drawn or left open is the same"]
    lines += [f"A is {quoted(paths[0].name)}, B is {quoted(paths[1].name)}; strength {predicate['strength']}"]
    for letter, replay in zip("AB", replays, strict=False):
        reading = replay.state.walk.graph.reading
        fixed = predicate["sequences"]["AB".index(letter)]["fixed"]
        if fixed or (reading.proto.ir_version < OVERRIDABLE and replay.state.overridable):
            lines.append(f"where no caller of {letter} gives values for stored ones that are inputs")
    assumed = sorted({it for replay in replays for it in replay.assumed})
    lines += [f"assumed of values: {it}" for it in assumed]
    trusted = sum(len(replay.trusted) for replay in replays)
    if trusted:
        lines.append(
            f"given that {trusted} folded {'values are' if trusted > 1 else 'value is'} right, which is not shown here"
        )
    used = {name: digest for replay in replays for name, digest in sorted(replay.used.items())}
    lines += [f"rests on the recorded proof of {name}, digest {digest}" for name, digest in sorted(used.items())]
    theorems = sorted({name for replay in replays for name in replay.theorems})
    if theorems:
        lines.append(f"rests on theorems of part 6 that `sonnx prove` proves: {', '.join(theorems)}")
    inputs = [it.state.walk.graph.reading.graphs[0].proto.input for it in replays]
    stated = [{it.name: type_bytes(it.type) for it in listed} for listed in inputs]
    if any(it != stated[0] for it in stated):
        lines.append("inputs that nothing reads are left aside: A and B have different ones")
    added = sorted((name, digest) for digest, name in texts().added.items())
    lines += [f"rests on the added text {quoted(name)}, SHA-256 {digest}" for name, digest in added]
    return lines
