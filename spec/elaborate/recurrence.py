"""The order of a recurrence: which step of which view the body of a view may read."""

from __future__ import annotations

from collections.abc import Iterator

from ..language.syntax import Expr, Span, Statement

Mistake = tuple[str, Span, str]
"""The kind, the place and the name of the view that is read."""


def check_order(view: Statement, position: int, names: list[str], step: str) -> Iterator[Mistake]:
    """The mistakes in the reads of the views of a block, by the body of the view at `position`.

    At the step itself only the views before it are read, at earlier steps (`t - 1`) all of them.
    """
    yield from _reads(view.expr, frozenset(names), frozenset(names[:position]), step)
    for item in view.ranges[1:]:
        yield from _reads(item.bound, frozenset(names), frozenset(names[:position]), step)


def _reads(expr: Expr, block: frozenset[str], before: frozenset[str], step: str) -> Iterator[Mistake]:
    children = list(expr.children())
    match expr:
        case Expr(head="index", args=(Expr(head="var", args=(str() as name,)), Expr() as first, *_)) if name in block:
            children = children[1:]
            lag = _lag(first, step)
            if lag is None:
                yield "along/step", first.span, name
            elif lag == 0 and name not in before:
                yield "along/order", expr.span, name
        case Expr(head="var", args=(str() as name,)) if name in block:
            yield "along/whole", expr.span, name
        case _:
            pass
    for child in children:
        yield from _reads(child, block, before, step)


def _lag(expr: Expr, step: str) -> int | None:
    """The number of steps that the index looks back: 0 for `t`, k for `t - k`, None for anything else."""
    match expr:
        case Expr(head="var", args=(name,)) if name == step:
            return 0
        case Expr(head="sub", args=(Expr(head="var", args=(name,)), Expr(head="int", args=(int() as back,)))) if (
            name == step
        ):
            return back
        case _:
            return None
