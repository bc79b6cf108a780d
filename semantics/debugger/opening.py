"""From the options of a command line, or of an editor, to a session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..application import Stuck
from ..errors import ModelError
from ..graph import Model
from ..input_files import named_inputs
from ..loader import load
from ..run_inputs import bound_inputs, random_inputs
from ..run_report import stuck_lines
from ..schedule import Schedule
from ..start import check_supported, check_well_formed, initial
from ..values import Value
from .session import Session, begin


def opened(
    path: Path,
    inputs: tuple[str, ...],
    seed: int | None,
    schedule: Schedule,
    *,
    reuse: bool = False,
    budget: int | None = None,
    limit: int | None = None,
    kept: int | None = None,
) -> Session:
    """A session on the model in a file with inputs as `sonnx run` takes them.

    Raises ModelError for what cannot be read or does not fit, Unsupported for operators without a meaning.
    """
    model = load(path)
    given = named_inputs(model, inputs)
    if seed is not None:
        given = {**given, **random_inputs(model, seed, given)[0]}
    return opened_model(model, given, schedule, reuse=reuse, budget=budget, limit=limit, kept=kept)


def opened_model(
    model: Model,
    given: Mapping[str, Value],
    schedule: Schedule = Schedule(),  # noqa: B008 - it is immutable
    *,
    reuse: bool = False,
    budget: int | None = None,
    limit: int | None = None,
    kept: int | None = None,
) -> Session:
    """A session on a model with inputs by name. Raises as `opened`."""
    from ..interpretations.ieee import apply

    check_supported(model)
    wrong = check_well_formed(model)
    if wrong is not None:
        raise ModelError(" ".join(stuck_lines(wrong)))
    state = initial(model, bound_inputs(model, given), schedule, apply, reuse=reuse, budget=budget)
    if isinstance(state, Stuck):
        raise ModelError(" ".join(stuck_lines(state)))
    return begin(state, limit=limit, kept=kept)
