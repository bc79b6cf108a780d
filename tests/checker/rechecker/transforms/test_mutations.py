"""Changes of honest certificates, drawn at random: what is confirmed shows the same of the same two models."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from sampling import sampled
from sonnx.checker.rechecker import Outcome, Recheck, recheck
from sonnx.semantics.errors import ModelError, Unsupported
from transformed import Certified, Statement, resigned, sealed, written

MODEL = """g (float[2,N,4] X, bool c) => (float[2,N,4] Y, float[2,N,4] Z) {
  A = Transpose<perm=[1,0,2]>(X) B = Transpose<perm=[1,0,2]>(A) C = Relu(B) D = Relu(B) E = Add(C, D)
  F = Transpose<perm=[0,2,1]>(E) G = Transpose<perm=[2,1,0]>(F) H = Transpose<perm=[1,2,0]>(G)
  K = Add(k, k) L = Mul(H, K) dead = Exp(L) P = Sub(L, X)
  Y = If(c) <then_branch = t () => (float[2,N,4] P1) { Q = Transpose(P) R = Transpose(Q) P1 = Relu(R) },
    else_branch = e () => (float[2,N,4] P2) { P2 = Neg(P) }>
  Z = Relu(P)
}"""
KINDS = ("swapped entries", "deleted", "doubled", "another number", "another text", "from elsewhere", "a step moved")


@cache
def honest(folder: Path) -> tuple[Certified, Recheck]:
    certified = written(folder, MODEL, {"k": np.float32([2.0])})
    return certified, certified.outcome()


def places(value: Any, at: tuple[Any, ...] = ("predicate",)) -> Iterator[tuple[Any, ...]]:
    """Where entries of lists and objects stand in what the statement says, the tools left out."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        if key not in ("seal", "tools"):
            yield (*at, key)
            yield from places(entry, (*at, key))


def mutated(statement: Statement, choose: random.Random) -> Statement:
    """The statement with one change."""
    made = statement
    while made == statement:
        made = changed(statement, choose)
    return made


def changed(statement: Statement, choose: random.Random) -> Statement:
    """The same, or the statement as it is where a change that was drawn does not fit."""
    made = copy.deepcopy(statement)
    kind, listed = choose.choice(KINDS), list(places(made["predicate"]))
    *path, key = choose.choice(listed)
    holder: Any = made
    for part in path:
        holder = holder[part]
    match kind:
        case "swapped entries" if isinstance(holder, list) and len(holder) > 1:
            other = choose.randrange(len(holder))
            holder[key], holder[other] = holder[other], holder[key]
        case "deleted":
            del holder[key]
        case "doubled" if isinstance(holder, list):
            holder.insert(choose.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
        case "another number" if type(holder[key]) is int:
            holder[key] += choose.choice((-2, -1, 1, 2, 100))
        case "another text" if isinstance(holder[key], str):
            holder[key] = choose.choice(("", "0", "a", holder[key] + "0", holder[key][::-1]))
        case "from elsewhere":
            *way, last = choose.choice(listed)
            source: Any = statement
            for part in (*way, last):
                source = source[part]
            holder[key] = copy.deepcopy(source)
        case "a step moved":
            steps = made["predicate"]["sequences"][0]["steps"]
            steps.insert(choose.randrange(len(steps)), steps.pop(choose.randrange(len(steps))))
    return made


@pytest.mark.parametrize("seed", sampled(range(300), 30))
def test_no_change_is_confirmed_that_shows_something_else(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    certified, first = honest(tmp_path_factory.getbasetemp() / "mutations")
    assert first.outcome is Outcome.CONFIRMED
    made = mutated(certified.statement, random.Random(seed))
    try:
        done = recheck(sealed(made), certified.model, certified.other)
    except ModelError:
        return
    assert done.outcome is not Outcome.CONFIRMED or done.shown == first.shown, made
    assert done.outcome is Outcome.CONFIRMED or not done.shown


@pytest.mark.campaign
def test_most_changes_are_not_confirmed(tmp_path_factory: pytest.TempPathFactory) -> None:
    certified, _ = honest(tmp_path_factory.getbasetemp() / "mutations")
    kept = []
    for seed in range(300):
        made = mutated(certified.statement, random.Random(seed))
        try:
            confirmed = recheck(sealed(made), certified.model, certified.other).outcome is Outcome.CONFIRMED
        except ModelError:
            confirmed = False
        if confirmed:
            kept.append(seed)
    assert len(kept) <= 60, kept  # steps that do not hang together in another order, names of tensors that are gone


# ---- The last model -----------------------------------------------------------------------------

SILENT = ("doc_string", "producer_name", "producer_version", "model_version", "metadata_props", "domain")
"""What says nothing of the meaning of a model, in the message of the model itself."""


def scalars(message: Any, top: bool = True) -> Iterator[tuple[Any, str, int | None]]:
    """The fields of a message that hold numbers and texts: where, which one, and at which place of a list."""
    for field, value in message.ListFields():
        if field.name == "doc_string" or (top and field.name in SILENT):
            continue
        listed = list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else None
        for place, entry in enumerate([value] if listed is None else listed):
            if hasattr(entry, "ListFields"):
                yield from scalars(entry, top=False)
            else:
                yield message, field.name, None if listed is None else place


def otherwise(value: Any, choose: random.Random) -> Any:
    """Another number or text."""
    match value:
        case bytes() if value:
            at = choose.randrange(len(value))
            return value[:at] + bytes([value[at] ^ 1 << choose.randrange(8)]) + value[at + 1 :]
        case str() | bytes():
            return value + (b"a" if isinstance(value, bytes) else "a")
        case float():
            return value + 1.0
        case _:
            return value + choose.choice((-1, 1))


@pytest.mark.parametrize("seed", sampled(range(300), 20))
def test_no_change_of_the_last_model_is_confirmed(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    certified, _ = honest(tmp_path_factory.getbasetemp() / "mutations")
    choose, last = random.Random(seed), onnx.load(certified.other)
    holder, name, place = choose.choice(list(scalars(last)))
    value = getattr(holder, name)
    if place is None:
        setattr(holder, name, otherwise(value, choose))
    else:
        value[place] = otherwise(value[place], choose)
    path = tmp_path_factory.getbasetemp() / "mutations" / f"{seed}.onnx"
    path.write_bytes(last.SerializeToString())
    changed_model = Certified(certified.model, path, certified.data)
    try:
        done = changed_model.outcome(resigned(certified.statement, changed_model, path))
    except (ModelError, Unsupported):
        return
    finally:
        path.unlink()
    silent = holder.DESCRIPTOR.name == "GraphProto" and name == "name"
    assert silent or done.outcome is not Outcome.CONFIRMED, (holder.DESCRIPTOR.name, name, place)
