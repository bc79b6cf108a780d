"""One test over a table of cases. A parameter makes a test of each case, which costs more than most cases do."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest
from sampling import seeds

Test = Callable[..., None]


def table(
    names: str | Sequence[str],
    cases: Iterable[Any],
    *,
    ids: Callable[[Any], object] | Sequence[str] | None = None,
    absent: str = "",
    few: int = 0,
) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, in one test: every case is tried, and each one that fails is named. For cases
    that need no mark, and no fixture of their own. absent: why there may be none, which skips the test. few: so many
    cases, which are drawn, are tried on every run, the others in the campaign."""
    named = [it.strip() for it in names.split(",")] if isinstance(names, str) else list(names)
    rows = [(getattr(case, "id", None), _values(case, len(named))) for case in cases]
    if not rows and absent:
        return pytest.mark.skip(reason=absent)
    if not rows:
        raise ValueError("a table without a case tests nothing")
    order = random.Random(len(rows)).sample(range(len(rows)), len(rows)) if few else range(len(rows))

    def over(test: Test) -> Test:
        @wraps(test)
        def every(part: Iterable[int] = range(len(rows)), **fixtures: Any) -> None:
            failed = []
            for number in part:
                label, values = rows[order[number]]
                try:
                    test(**dict(zip(named, values, strict=True)), **fixtures)
                except Exception as problem:
                    problem.add_note(f"case {order[number]}: {label or _label(ids, order[number], values)}")
                    failed.append(problem)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(list(part))} cases of {test.__name__}", failed)

        left = [it for name, it in inspect.signature(test).parameters.items() if name not in named]
        if few:
            left.append(inspect.Parameter("part", inspect.Parameter.KEYWORD_ONLY))
        every.__signature__ = inspect.Signature(left)  # type: ignore[attr-defined]
        return pytest.mark.parametrize("part", seeds(len(rows), few))(every) if few else every

    return over


def _values(case: Any, count: int) -> tuple[Any, ...]:
    """The arguments of a case; `pytest.param` gives it a name."""
    if hasattr(case, "marks"):
        if case.marks:
            raise TypeError(f"a case of a table has no marks: {case}")
        return tuple(case.values)
    return (case,) if count == 1 else tuple(case)


def _label(ids: Callable[[Any], object] | Sequence[str] | None, number: int, values: tuple[Any, ...]) -> str:
    if callable(ids):
        return "-".join(str(ids(value)) for value in values)
    return ids[number] if ids else repr(values)[:500]
