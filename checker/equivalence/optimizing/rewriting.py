"""Rewrites applied from Python."""

from __future__ import annotations

from collections.abc import Sequence

from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.writing import model_proto
from sonnx.spec.elaborate.core import CoreRewrite

from .optimizer import LOCAL, optimize
from .passes import Firing


def rewrite(
    model: Model, rules: Sequence[str | CoreRewrite], *, strength: str = "exact"
) -> tuple[Model, tuple[Firing, ...]]:
    """The model after rewrites, wherever they stand and as long as they do, and the log of what was done, in order.

    rules: names of rewrites of the text, or rewrites of texts that were added (`sonnx.spec.library.extended`), tried in
    this order. One that is not on record is proved first, and used as far as that proof goes: up to so many axes as
    `sonnx prove --transforms` tries. strength: what each must claim at least, and be proved to: exact, allowed or
    reals. Nothing else is changed: no value is folded, and only nodes of a left side go, where nobody reads them now.

    Raises `admitting.UnknownRule` for a name that there is no rewrite of, or a rewrite that is not proved so strongly;
    ModelError for a model that is not well-formed.
    """
    done = optimize(model, rules=rules, strength=strength, passes=LOCAL)
    return load_proto(model_proto(done.model)), done.log
