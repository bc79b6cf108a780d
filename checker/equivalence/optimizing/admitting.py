"""Which rewrites may be applied: those on record, and those that are named and proved on the spot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from sonnx.semantics.errors import ModelError
from sonnx.spec.elaborate.core import CoreRewrite
from sonnx.spec.library import specification

from ..proving.rules import LISTED, PROVED, REFUTED
from ..proving.suite import judged_rewrite
from ..record import STRENGTHS, Proof


class UnknownRule(ModelError):  # noqa: N818 - a sentence for the user
    """A rule that there is none of, or that is not proved as strongly as it is asked for."""


def admitted(
    rules: Sequence[str | CoreRewrite] | None, strength: str, known: Mapping[str, Proof], *, prove: bool = False
) -> tuple[list[CoreRewrite], Mapping[str, Proof]]:
    """The rules that are proved at least as strongly as is asked for, and as they claim, with the proofs.

    rules: names, or rewrites themselves; None for all that are known. prove: one that is not known is proved now.
    Raises UnknownRule for one that is named and is none of these.
    """
    text = specification().rules
    enough = STRENGTHS[: STRENGTHS.index(strength) + 1]
    if rules is None:
        usable = [text[name] for name in text if name in known and not _too_weak(text[name], known[name], enough)]
        return usable, known
    chosen: dict[str, CoreRewrite] = {}
    proofs: dict[str, Proof] = {}
    for asked in rules:
        if isinstance(asked, str) and asked not in text:
            raise UnknownRule(f"no rewrite is named {asked}: sonnx prove --transforms lists them")
        rule = text[asked] if isinstance(asked, str) else asked
        if chosen.setdefault(rule.name, rule) is not rule:
            raise UnknownRule(f"two rewrites are named {rule.name}: give one of them another name")
        if rule.claim not in enough:
            raise UnknownRule(f"{rule.name} claims {rule.claim}, which is not enough for the strength {strength}")
        proof = known.get(rule.name) if text.get(rule.name) is rule else None
        proof = _proved_now(rule) if proof is None and prove else proof
        if proof is None:
            raise UnknownRule(f"{rule.name} is not proved, which is not enough for the strength {strength}")
        weaker = _too_weak(rule, proof, enough)
        if weaker:
            raise UnknownRule(f"{rule.name} {weaker}, which is not enough for the strength {strength}")
        proofs[rule.name] = proof
    return list(chosen.values()), proofs


def _too_weak(rule: CoreRewrite, proof: Proof, enough: Sequence[str]) -> str:
    """Why a proof does not admit a rule; "" where it does."""
    if rule.claim not in enough:
        return f"claims {rule.claim}"
    if STRENGTHS.index(proof.strength) > STRENGTHS.index(rule.claim):
        return f"claims {rule.claim} and is proved as {proof.strength} only"
    return ""


@cache
def _proved_now(rule: CoreRewrite) -> Proof:
    """The proof of a rule, as far as it goes. Raises UnknownRule with the reason where there is none."""
    verdict = judged_rewrite(rule)
    if verdict.verdict == PROVED:
        return Proof(rule.name, verdict.strength, verdict.most, LISTED if verdict.cut else None)
    if verdict.verdict == REFUTED and verdict.witness is not None:
        raise UnknownRule(f"{rule.name} is refuted: {verdict.witness.words}")
    raise UnknownRule(f"{rule.name} is not proved: {next(iter(verdict.reasons), 'no reason is known')}")
