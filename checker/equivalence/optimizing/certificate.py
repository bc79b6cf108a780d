"""The certificate of what was done to models: the steps, and what they rest on, as one sequence of bytes.

`sonnx recheck` does the steps again by matching alone. CERTIFICATE.md has the form.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.graph import Attribute, Model
from sonnx.semantics.model.writing import names_of
from sonnx.spec.library import own_specification, specification

from ..record import STRENGTHS, digest
from ..texts import rests_on, theorem
from .journal import Dropped, Folded, Merged, New, Raised, Replaced, Shared, Step, Value, Written
from .optimizer import Optimized, optimize, overridable

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:sonnx:transform:v1"
ALLOW: Final[Mapping[type, tuple[str, ...]]] = {
    Replaced: ("Replacement", "Redirection", "MatchIsApart"),
    Folded: ("ConstantFolding",),
    Merged: ("CommonSubexpressions",),
    Shared: ("Redirection",),
    Dropped: ("Pruning",),
    Raised: (),
}
"""The theorems of part 6 that allow a step."""

Data = Any


class NotOffered(ModelError):  # noqa: N818 - a sentence for the user
    """Why there is no certificate."""


def of_optimized(model: Model, output: Path, done: Optimized, *, fixed: bool) -> bytes:
    """The certificate that a model file is made of another one. Raises NotOffered for a rewrite of an
    added text, and for a model that has no file."""
    named = names_of(done.model)
    known = done.model.tensors
    live = sorted(
        {t for it in done.model.graphs for n in it.nodes for t in _tensors(done.model, n)} | _held(done.model)
    )
    names = [[t, named[t]] for t in live if named[t] != known[t].name]
    made = {"name": output.name, "digest": {"sha256": hashlib.sha256(output.read_bytes()).hexdigest()}}
    return _sealed("optimize", [_files(model), [made]], [(done, fixed)], names)


def of_both(models: Sequence[Model], strength: str) -> bytes:
    """The certificate that two model files come to the same by rewrites of a strength, where no caller gives values for
    stored ones. Raises NotOffered as above, and what `optimize` raises."""
    fixed = [bool(overridable(it)) for it in models]
    done = [optimize(it, strength=strength, fixed=no) for it, no in zip(models, fixed, strict=True)]
    return _sealed("equiv", [_files(it) for it in models], list(zip(done, fixed, strict=True)), [])


def _tensors(model: Model, n: int) -> list[int]:
    node = model.nodes[n]
    return [t for t in (*node.inputs, *node.outputs) if t is not None]


def _held(model: Model) -> set[int]:
    graphs = model.graphs
    held = {t for it in graphs for t, _ in (*it.initializers, *it.sparse_initializers)}
    return held | {t for it in graphs for t in (*it.inputs, *it.outputs)}


def _files(model: Model) -> list[Data]:
    if not model.files:
        raise NotOffered("a certificate is about model files: load the model from a path")
    return [{"name": it.name, "digest": {"sha256": it.sha256}} for it in model.files]


def _sealed(kind: str, files: Sequence[list[Data]], done: Sequence[tuple[Optimized, bool]], names: Data) -> bytes:
    rules = specification().rules
    steps = [step for it, _ in done for step in it.steps]
    used = {it.rule for it in steps if isinstance(it, Replaced)}
    used |= {name for it in steps if isinstance(it, Replaced) for _, name in it.swapped}
    own = sorted(name for name in used if name not in own_specification().rules)
    if own:
        raise NotOffered(f"{own[0]} is a rewrite of an added text, on whose proof no certificate can rest")
    held = next((it.rule for it in steps if isinstance(it, Replaced) and it.held), None)
    if held is not None:
        raise NotOffered(
            f"{held} was applied where a stored value stands for an operator without inputs, of which no theorem of"
            " part 6 speaks: ask for no certificate, or for rewrites without this one"
        )
    theorems = sorted({name for it in steps for name in ALLOW[type(it)]})
    assumed = dict.fromkeys(said for it, _ in done for firing in it.log for said in firing.assumed)
    claims = [rules[name].claim for name in used]
    predicate = {
        "assumed": list(assumed),
        "kind": kind,
        "names": names,
        "rules": {
            name: {"claim": rules[name].claim, "proof": digest(rules[name]), "text": rests_on(name)}
            for name in sorted(used)
        },
        "sequences": [{"fixed": fixed, "steps": [_step(step) for step in it.steps]} for it, fixed in done],
        "strength": max(claims, key=STRENGTHS.index, default="exact"),
        "theorems": {name: theorem(name) for name in theorems},
        "tools": {name: version(name) for name in ("onnx", "sonnx")},
    }
    subject = [
        {**it, "name": f"{side}/{it['name']}"} for side, listed in zip("AB", files, strict=True) for it in listed
    ]
    bare = {"_type": STATEMENT_TYPE, "predicate": predicate, "predicateType": PREDICATE_TYPE, "subject": subject}
    seal = hashlib.sha256(_canonical(bare)).hexdigest()
    return _canonical({**bare, "predicate": {**predicate, "seal": seal}}) + b"\n"


def _canonical(data: Data) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _step(step: Step) -> Data:
    match step:
        case Replaced(rule, nodes, swapped, made, instead, left, _):
            return {
                "do": "rewrite", "rule": rule, "nodes": list(nodes), "swapped": [list(it) for it in swapped],
                "made": [_written(it) for it in made], "instead": [list(it) for it in instead],
                "left": [_new(it) for it in left],
            }  # fmt: skip
        case Folded(node, values):
            return {"do": "fold", "node": node, "values": [_value(it) for it in values]}
        case Merged(node, other):
            return {"do": "merge", "node": node, "other": other}
        case Shared(tensor, other):
            return {"do": "share", "tensor": tensor, "other": other}
        case Dropped(node):
            return {"do": "drop", "node": node}
        case Raised(opset):
            return {"do": "raise", "opset": opset}


def _written(it: Written) -> Data:
    return {
        "node": it.node, "name": it.name, "domain": it.domain, "op_type": it.op_type, "version": it.version,
        "inputs": list(it.inputs), "outputs": [_new(t) for t in it.outputs],
        "attributes": {name: _attribute(value) for name, value in it.attributes.items()},
    }  # fmt: skip


def _new(it: New | None) -> Data:
    return None if it is None else [it.tensor, it.name]


def _value(it: Value | None) -> Data:
    if it is None:
        return None
    return {"tensor": it.tensor, "element": it.element, "dims": list(it.dims), "sha256": it.sha256}


def _attribute(it: Attribute) -> Data:
    entries = it.value if isinstance(it.value, tuple) else (it.value,)
    return [it.kind, [_entry(entry) for entry in entries]]


def _entry(value: object) -> str:
    match value:
        case bytes():
            return value.hex()
        case float():
            return struct.pack(">f", value).hex()
        case _:
            return str(value)
