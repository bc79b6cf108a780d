"""The few of many that are needed for something to happen, found by halves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Happens = Callable[[frozenset[str]], bool]
"""If it happens with these candidates alone."""


def needed(candidates: Sequence[str], happens: Happens) -> tuple[str, ...]:
    """Candidates with which it happens and none of which can be left out; empty where it happens with none.

    It has to happen with all of them. The shortest beginning of the candidates with which it happens, beside those
    known to be needed, ends in one that is needed: k of n are found with about k * log2(n) questions. What is returned
    was asked for, as it is and without each of its members; nothing is assumed of how candidates act together.
    """
    known: list[str] = []
    rest = list(candidates)
    while rest and not happens(frozenset(known)):
        fails, holds = 0, len(rest)
        while holds - fails > 1:
            middle = (fails + holds) // 2
            if happens(frozenset((*known, *rest[:middle]))):
                holds = middle
            else:
                fails = middle
        known.append(rest[holds - 1])
        del rest[holds - 1 :]
    return tuple(sorted(least(known, happens), key=list(candidates).index))


def least(names: Sequence[str], happens: Happens) -> tuple[str, ...]:
    """Names left out one after the other as long as it happens without them: it happens with those that are returned,
    and does not if one more is left out. It has to happen with all of them."""
    kept = tuple(names)
    while True:
        fewer = (tuple(other for other in kept if other != it) for it in kept)
        smaller = next((rest for rest in fewer if happens(frozenset(rest))), None)
        if smaller is None:
            return kept
        kept = smaller
