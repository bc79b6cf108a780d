"""From the options of a command line, or of an editor, to a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from ...errors import ModelError
from ...machine.execution import check_complete, check_well_formed, initial
from ...machine.files.numpy_files import named_inputs
from ...machine.inputs import bound_inputs, random_inputs
from ...machine.report import stuck_lines
from ...machine.schedule import Schedule, parse_schedule
from ...machine.trace.format import Json, model_digest, reference_from_json
from ...machine.trace.replay import Values, read_trace
from ...model.graph import Model
from ...model.loader import load
from ...model.path import TensorPlace, quote, resolve
from ...model.values import Value
from ...operators.application import Stuck
from ...resources.process import paused
from .session import Session, begin


@paused()
def opened(
    path: Path,
    inputs: tuple[str, ...],
    seed: int | None,
    schedule: Schedule,
    *,
    sizes: Mapping[str, int] = MappingProxyType({}),
    reuse: bool = False,
    budget: int | None = None,
    limit: int | None = None,
    kept: int | None = None,
) -> Session:
    """A session on the model in a file with inputs, a seed and sizes as `sonnx run` takes them.

    Raises ModelError for what cannot be read or does not fit. An operator without a meaning is met when its node comes.
    """
    model = load(path)
    given = named_inputs(model, inputs)
    if seed is not None:
        given = {**given, **random_inputs(model, seed, given, sizes)[0]}
    session = opened_model(model, given, schedule, reuse=reuse, budget=budget, limit=limit, kept=kept)
    return replace(session, source=path)


@paused()
def recorded(
    path: Path, trace: Path, *, budget: int | None = None, limit: int | None = None, kept: int | None = None
) -> Session:
    """A session on the run that a trace of `sonnx run` has recorded, with its inputs, order and allocation.

    Raises ModelError for what is no such trace, or one of another model, OSError for what cannot be opened.
    """
    model, record = load(path), read_trace(trace)
    shown = quote(str(trace))
    if model_digest(model) != record.head.get("model"):
        raise ModelError(f"{shown} is the trace of another model: give the file that was run, with the same bytes")
    schedule = parse_schedule(str(record.head.get("schedule")))
    if record.broken or schedule is None:
        raise ModelError(f"{shown} cannot be followed: {record.broken or 'its schedule is not known'}")
    entries = record.head.get("inputs")
    with Values(record.values) as values:
        given = {
            _input_name(model, entry): values.value(reference_from_json(entry))
            for entry in (entries if isinstance(entries, list) else [])
        }
    reuse = record.head.get("allocation") == "arena"
    session = opened_model(model, given, schedule, reuse=reuse, budget=budget, limit=limit, kept=kept)
    return replace(session, source=path)


def _input_name(model: Model, entry: Json) -> str:
    """The name of the input whose value an entry of the head of a trace is."""
    text = str(entry.get("tensor")) if isinstance(entry, dict) else ""
    try:
        place = resolve(model, text)
    except ValueError:
        place = None
    if not isinstance(place, TensorPlace):
        raise ModelError("the trace names an input that the model does not have: make it again")
    return model.tensors[place.tensor].name


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
    from ...operators.compiled.ieee import apply

    check_complete(model)
    wrong = check_well_formed(model)
    if wrong is not None:
        raise ModelError("; ".join(line.strip() for line in stuck_lines(wrong)))
    state = initial(model, bound_inputs(model, given), schedule, apply, reuse=reuse, budget=budget)
    if isinstance(state, Stuck):
        raise ModelError("; ".join(line.strip() for line in stuck_lines(state)))
    return begin(state, limit=limit, kept=kept)
