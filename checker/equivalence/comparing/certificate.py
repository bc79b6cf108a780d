"""The certificate of a comparison: what a second party needs to follow it, as one sequence of bytes.

It names both models by their digests, every firing with its rule, place and facts, the texts of the rules by their
digests, and the classes of nodes that have one value. `sonnx recheck` does not replay it yet: it is a record, sealed
against damage.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from sonnx.spec.library import specification

from ..record import digest
from .comparison import Comparison
from .report import Data, to_data

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:sonnx:equivalence:v1"


def certificate(comparison: Comparison) -> dict[str, Data]:
    """The statement. Raises ValueError for models that come from no file."""
    if not all(model.files for model in comparison.models):
        raise ValueError("a certificate is about model files: compare paths")
    data = to_data(comparison)
    rules = specification().rules
    used = sorted({it.rule for it in comparison.sides.firings.values() if it.rule in rules})
    subjects: list[Data] = [
        {"name": f"{side}/{it.name}", "digest": {"sha256": it.sha256}}
        for side, model in zip("AB", comparison.models, strict=True)
        for it in model.files
    ]
    return {
        "_type": STATEMENT_TYPE,
        "predicateType": PREDICATE_TYPE,
        "subject": subjects,
        "predicate": {**data, "rules": {name: digest(rules[name]) for name in used}},
    }


def seal(statement: dict[str, Data]) -> bytes:
    """The bytes of a statement: canonical JSON with `seal`, the SHA-256 of the form without it."""
    bare = _canonical(statement)
    return _canonical({**statement, "seal": hashlib.sha256(bare).hexdigest()}) + b"\n"


def _canonical(data: Data) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
