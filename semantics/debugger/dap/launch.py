"""The options of `launch` and `attach` as one table, the session that they open, and its listing as a file."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from sonnx.spec.terminal import one_line

from ...errors import ModelError
from ...machine.schedule import Schedule, parse_schedule
from ...machine.trace.format import Json
from ...model.path import quote
from ...resources.process import memory_budget
from ..commands.table import execute
from ..display.answers import Refusal
from ..display.listing import SUFFIX, Listing, check_listing, write_listing
from ..display.rendering import lines
from ..session.opening import opened, recorded
from ..session.session import Session
from ..timeline.history import KEPT, Refused
from .messages import Arguments

_HEAD: Final = "# sonnx listing "


@dataclass(frozen=True, slots=True)
class ListingFile:
    """path: absolute. sha256: of its bytes. note: what the person should know about how it came to be."""

    path: Path
    sha256: str
    note: str = ""

    @property
    def source(self) -> dict[str, Json]:
        """The protocol's Source of it."""
        return {
            "name": one_line(self.path.name),
            "path": str(self.path),
            "origin": "listing of the model, made by sonnx",
            "checksums": [{"algorithm": "SHA256", "checksum": self.sha256}],
        }

    def is_at(self, path: str) -> bool:
        """True where a path that a client gives is this file."""
        try:
            return os.path.normcase(path) == os.path.normcase(self.path) or self.path.samefile(path)
        except (OSError, ValueError):
            return False


def made_listing(listing: Listing, model: Path, wanted: Path | None) -> ListingFile:
    """The listing in its file: beside the model where nothing else is wanted, or in a temporary folder where that
    cannot be written. One of an older model is written anew. Raises ModelError for a file that is no listing."""
    path = (model.with_name(model.name + SUFFIX) if wanted is None else wanted).absolute()
    sha256 = hashlib.sha256(listing.text.encode("ascii")).hexdigest()
    try:
        return ListingFile(path, sha256, _written(listing, path))
    except OSError as error:
        if wanted is not None:
            raise ModelError(f"the listing cannot be written to {quote(str(path))}: {error.strerror}") from None
        there = Path(tempfile.mkdtemp(prefix="sonnx-")) / path.name
        write_listing(listing, there)
        note = f"{quote(str(path))} cannot be written ({error.strerror}): the listing is {quote(str(there))}"
        return ListingFile(there, sha256, note)


def _written(listing: Listing, path: Path) -> str:
    """Writes it unless it is there; gives the note."""
    if not path.exists():
        write_listing(listing, path)
        return ""
    try:
        check_listing(listing, path)
        return ""
    except ModelError:
        with path.open("rb") as file:
            ours = file.read(len(_HEAD)) == _HEAD.encode("ascii")
        if not ours:
            raise ModelError(f'{quote(str(path))} is no listing: set "listing" to another path') from None
    write_listing(listing, path)
    return f"{quote(str(path))} was the listing of another model and is written anew: look at your breakpoints again"


# ---- Options --------------------------------------------------------------------------------------

LAUNCH, ATTACH = "launch", "attach"
ALLOCATIONS: Final = ("simple", "arena")


@dataclass(frozen=True, slots=True)
class Option:
    """schema: JSON Schema of the value, with its default where there is one. of: the requests that take it."""

    name: str
    schema: Mapping[str, Json]
    description: str
    of: tuple[str, ...] = (LAUNCH, ATTACH)
    required: tuple[str, ...] = ()


_TEXTS: Final[Json] = {"type": "array", "items": {"type": "string"}}
OPTIONS: Final = (
    Option("model", {"type": "string"}, "The model: an .onnx file.", required=(LAUNCH, ATTACH)),
    Option(
        "inputs",
        {"anyOf": [{"type": "string"}, _TEXTS, {"type": "object", "additionalProperties": {"type": "string"}}]},
        "The inputs: NAME=FILE or FILE.npz, an array of these, or an object from names to files"
        " (.npy, .npz, .pb, .json).",
    ),
    Option("random", {"type": "integer", "minimum": 0}, "Draw the inputs that are not given from this seed."),
    Option(
        "sizes", {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
        "Sizes that the model leaves open, by name, for the inputs that are drawn.", (LAUNCH,),
    ),
    Option("listing", {"type": "string"}, "Where the listing is written. Default: beside the model."),
    Option("stopOnEntry", {"type": "boolean", "default": False}, "Stand still before the first step."),
    Option(
        "schedule", {"type": "string", "default": "topological"}, "The order: topological, random:SEED or demand.",
        (LAUNCH,),
    ),
    Option(
        "allocation", {"type": "string", "enum": list(ALLOCATIONS), "default": "simple"},
        "simple: nothing in memory is used again. arena: what is freed is.", (LAUNCH,),
    ),
    Option("reference", {"type": "string"}, "A trace of sonnx run, for the exception filter divergence."),
    Option(
        "historyLimit", {"type": "integer", "minimum": 2, "default": KEPT},
        "About how many states are kept; others are computed again when they are needed.",
    ),
    Option("maxSteps", {"type": "integer", "minimum": 0}, "The greatest number of steps."),
    Option("maxMemory", {"type": "integer", "minimum": 0}, "The greatest size of the memory M in bytes."),
    Option(
        "allowEdits", {"type": "boolean", "default": False},
        "Allow changed values: each makes a timeline that is no execution of the model.",
    ),
    Option("commands", {**_TEXTS, "default": []} if isinstance(_TEXTS, dict) else {}, "Commands to begin with."),
    Option("trace", {"type": "string"}, "A trace of sonnx run: its inputs and order are used again.", (ATTACH,)),
    Option("session", {"type": "string"}, "A session that the command save has written.", (ATTACH,)),
)  # fmt: skip
"""All options. `noDebug` is the protocol's own."""

_OTHERS: Final = frozenset(("type", "request", "name", "noDebug", "internalConsoleOptions", "presentation", "cwd"))


@dataclass(frozen=True, slots=True)
class Launch:
    """A model to be debugged, and how. trace, session: what is attached to."""

    model: Path
    inputs: tuple[str, ...] = ()
    random: int | None = None
    listing: Path | None = None
    stop_on_entry: bool = False
    schedule: Schedule = Schedule()  # noqa: RUF009 - it is immutable
    reuse: bool = False
    reference: Path | None = None
    history_limit: int = KEPT
    max_steps: int | None = None
    max_memory: int | None = None
    allow_edits: bool = False
    no_debug: bool = False
    commands: tuple[str, ...] = ()
    trace: Path | None = None
    session: Path | None = None
    sizes: tuple[tuple[str, int], ...] = ()


def schema(request: str) -> dict[str, Json]:
    """`properties` and `required` of the JSON Schema of a request's arguments."""
    mine = [it for it in OPTIONS if request in it.of]
    properties: dict[str, Json] = {it.name: {**it.schema, "description": it.description} for it in mine}
    return {"properties": properties, "required": [it.name for it in mine if request in it.required]}


def launch_of(request: str, given: Arguments) -> Launch:
    """The launch that the arguments of a request mean. Raises Refused with what to do."""
    _check_names(request, given)
    schedule = parse_schedule(given.text("schedule", "topological"))
    if schedule is None:
        raise Refused('"schedule" must be topological, random:SEED or demand')
    allocation = given.text("allocation", "simple")
    if allocation not in ALLOCATIONS:
        raise Refused('"allocation" must be simple or arena')
    if not given.has("model"):
        raise Refused('the configuration names no model: set "model" to the path of an .onnx file')
    trace, session = _path(given, "trace"), _path(given, "session")
    if request == ATTACH and (trace is None) == (session is None):
        raise Refused('attach needs either "trace", a trace of sonnx run, or "session", a saved session')
    return Launch(
        Path(given.text("model")).expanduser(),
        _inputs(given),
        given.maybe_whole("random"),
        _path(given, "listing"),
        given.flag("stopOnEntry"),
        schedule,
        allocation == "arena",
        _path(given, "reference"),
        given.whole("historyLimit", KEPT, least=2),
        given.maybe_whole("maxSteps"),
        given.maybe_whole("maxMemory", most=1 << 53),
        given.flag("allowEdits"),
        given.flag("noDebug"),
        given.texts("commands"),
        trace,
        session,
        _sizes(given),
    )


def _check_names(request: str, given: Arguments) -> None:
    """Refuses a name that looks like a misspelt option; clients add names of their own, which are passed over."""
    mine = {it.name for it in OPTIONS if request in it.of}
    for name in given.fields:
        if name in mine or name in _OTHERS or name.startswith("__"):
            continue
        elsewhere = next((it.of[0] for it in OPTIONS if it.name == name), None)
        if elsewhere is not None:
            raise Refused(f"{quote(name)} is an option of {elsewhere}: leave it out of {request}")
        close = get_close_matches(name, mine, 1, 0.8)
        if close:
            raise Refused(f"there is no option {quote(name)}: did you mean {quote(close[0])}?")


def _path(given: Arguments, name: str) -> Path | None:
    text = given.text(name, "")
    return Path(text).expanduser() if text else None


def _sizes(given: Arguments) -> tuple[tuple[str, int], ...]:
    """The sizes by name. Raises Refused."""
    stated = given.part("sizes")
    if stated.fields and not given.has("random"):
        raise Refused('"sizes" is for inputs that are drawn: set "random" too')
    return tuple((name, stated.whole(name)) for name in stated.fields)


def _inputs(given: Arguments) -> tuple[str, ...]:
    stated = given.fields.get("inputs")
    if isinstance(stated, dict):
        if not all(isinstance(file, str) for file in stated.values()):
            raise Refused('"inputs" must give each name a file, a string')
        return tuple(f"{name}={file}" for name, file in stated.items())
    return (stated,) if isinstance(stated, str) else given.texts("inputs")


# ---- From a launch to a session -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Debuggee:
    """notes: what should be said about it."""

    session: Session
    notes: tuple[str, ...] = ()


def opened_for(launch: Launch, interrupted: Callable[[], bool]) -> Debuggee:
    """The session that a launch means. Raises Refused, ModelError, Unsupported or OSError."""
    session = replace(_opened(launch, memory_budget(launch.max_memory)), interrupted=interrupted)
    if launch.session is not None:
        session = _done(session, f"load '{launch.session}'")[0]
    notes: list[str] = []
    for line in launch.commands:
        session, said = _done(session, line)
        notes += said
    if not launch.allow_edits and any(timeline.label for timeline in session.timelines):
        raise Refused('a value was changed, by a command or in the saved session: set "allowEdits" to true for that')
    return Debuggee(session, tuple(notes))


def _opened(launch: Launch, budget: int | None) -> Session:
    limit, kept = launch.max_steps, launch.history_limit
    if launch.trace is not None:
        return recorded(launch.model, launch.trace, budget=budget, limit=limit, kept=kept)
    return opened(
        launch.model, launch.inputs, launch.random, launch.schedule, sizes=dict(launch.sizes), reuse=launch.reuse,
        budget=budget, limit=limit, kept=kept,
    )  # fmt: skip


def _done(session: Session, line: str) -> tuple[Session, tuple[str, ...]]:
    outcome = execute(session, line)
    if isinstance(outcome.answer, Refusal):
        raise Refused(f"{line}: {outcome.answer.message}", outcome.answer.candidates)
    return outcome.session, lines(outcome.answer)
