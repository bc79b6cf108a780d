"""Models that were optimized, with their certificates: written to files, and changed for tests of `recheck`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from small_models import proto_of
from sonnx.checker.equivalence.optimizing.certificate import of_both, of_optimized
from sonnx.checker.equivalence.optimizing.optimizer import optimize
from sonnx.checker.equivalence.record import PATH, rows
from sonnx.checker.rechecker import Recheck, recheck
from sonnx.checker.rechecker.transforms import record
from sonnx.semantics.model.loader import load
from sonnx.semantics.model.writing import model_proto

Statement = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Certified:
    """Two model files and the bytes of a certificate about them."""

    model: Path
    other: Path
    data: bytes

    @property
    def statement(self) -> Statement:
        """The statement, to be changed."""
        made: Statement = json.loads(self.data)
        return made

    def outcome(self, statement: Statement | None = None) -> Recheck:
        """The outcome of a statement, sealed anew, or of the certificate as it is."""
        return recheck(self.data if statement is None else sealed(statement), self.model, self.other)


def optimized(folder: Path, model: onnx.ModelProto, **how: Any) -> Certified:
    """A model, what `optimize` makes of it, and the certificate of that."""
    folder.mkdir(exist_ok=True)
    path, other = folder / "model.onnx", folder / "small.onnx"
    path.write_bytes(model.SerializeToString())
    loaded = load(path)
    done = optimize(loaded, **how)
    other.write_bytes(model_proto(done.model).SerializeToString(deterministic=True))
    return Certified(path, other, of_optimized(loaded, other, done, fixed=bool(how.get("fixed"))))


def written(
    folder: Path, graph: str, stored: Mapping[str, np.ndarray] | None = None, of: int = 22, **how: Any
) -> Certified:
    """The same for a graph in ONNX's textual syntax, in the operator set `of`."""
    return optimized(folder, proto_of(graph, of, stored), **how)


def compared(folder: Path, one: onnx.ModelProto, other: onnx.ModelProto, strength: str = "exact") -> Certified:
    """Two models, and the certificate that rewrites bring them to the same."""
    paths = folder / "one.onnx", folder / "other.onnx"
    for path, model in zip(paths, (one, other), strict=True):
        path.write_bytes(model.SerializeToString())
    return Certified(*paths, of_both([load(it) for it in paths], strength))


def sealed(statement: Statement) -> bytes:
    """The bytes of a statement with the seal that is due."""
    predicate = {key: it for key, it in statement["predicate"].items() if key != "seal"}
    bare = {**statement, "predicate": predicate}
    seal = hashlib.sha256(spelled(bare)).hexdigest()
    return spelled({**bare, "predicate": {**predicate, "seal": seal}}) + b"\n"


def spelled(value: Any) -> bytes:
    """The canonical form."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def resigned(statement: Statement, certified: Certified, other: Path) -> Statement:
    """The statement about another last model."""
    digest = {"sha256": hashlib.sha256(other.read_bytes()).hexdigest()}
    subject = [it for it in statement["subject"] if it["name"].startswith("A/")]
    return {**statement, "subject": [*subject, {"name": f"B/{certified.other.name}", "digest": digest}]}


def with_record(certified: Certified, folder: Path, change: Callable[[str, dict[str, str]], None]) -> Recheck:
    """The outcome where each row of the two tables of the record has been changed; they are written to a folder."""
    for name in ("proved.tsv", "texts.tsv"):
        kept = rows(PATH.with_name(name))
        for row in kept:
            change(name, row)
        lines = ["\t".join(kept[0]), *("\t".join(row.values()) for row in kept)]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(record, "FOLDER", folder)
        record.rows_of.cache_clear()
        try:
            return certified.outcome()
        finally:
            record.rows_of.cache_clear()
