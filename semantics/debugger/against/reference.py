"""Where reference values come from: an .npz file, a trace, an engine, another model on the machine; and which tensor
of this model each of them is of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...errors import ModelError, Unsupported
from ...machine.files.numpy_files import entry_name, npz_names, read_npz
from ...machine.memory import load_value
from ...machine.phases import Advance, Apply, Phase
from ...machine.state import State, tensor_path
from ...machine.trace.format import Json, reference_from_json
from ...machine.trace.format import Reference as Written
from ...machine.trace.replay import Values, read_trace
from ...model.graph import Model, TensorId
from ...model.loader import load
from ...model.path import Body, parse_path, print_path, quote
from ...model.values import Value
from ...operators.application import Stuck
from ...resources.persistent import items
from ...runtimes.engines import protocol
from ...runtimes.engines.own import limited_run
from ...runtimes.engines.registry import BACKEND, KERNELS, names, started
from ...runtimes.engines.sources import source_of
from ...runtimes.engines.tapping import tapped
from ..timeline.history import Refused

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Against:
    """Reference values by the paths of this model's tensors, with the numbers of runs.

    text: where they come from. values: read, or where they lie in `file`. unmatched: names of the reference that no
    tensor here has. notes: what a person has to know of them.
    """

    text: str
    values: Mapping[str, Value | Written]
    file: Path | None = None
    unmatched: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def value(self, path: str) -> Value | None:
        """The value of a tensor in a run of its graph; None where the reference has none. Raises Refused."""
        value = self.values.get(path)
        if not isinstance(value, Written) or self.file is None:
            return None if isinstance(value, Written) else value
        try:
            with Values(self.file) as values:
                return values.value(value)
        except (ModelError, OSError) as error:
            raise Refused(f"{quote(str(self.file))}: {error}") from None


def opened(text: str, model: Model, source: Path | None, given: protocol.Values, maps: Mapping[str, str]) -> Against:
    """The reference that a text names: an engine, or a file that is an .npz, a trace or a model.

    source: the file of the model that is debugged. given: its inputs. maps: names here by names there. Raises Refused.
    """
    place = _Names(model, maps)
    if not Path(text).exists() and (text in names() or text.startswith((BACKEND, KERNELS))):
        made = _of_engine(text, model, source, given, place)
    else:
        made = _of_file(Path(text), given, place)
    if not made.values:
        there = f"it has {', '.join(map(quote, made.unmatched[:_SHOWN]))}" if made.unmatched else "it has no values"
        raise Refused(f"no tensor of {quote(text)} is one of this model: {there}; map THEIRS=OURS says which is which")
    unused = sorted(place.maps.keys() - place.used)
    if unused:
        raise Refused(f"map names {quote(unused[0])}, which {quote(text)} does not have")
    return made


def mapping_of(text: str) -> dict[str, str]:
    """Names here by names there: THEIRS=OURS, or a file of such lines. Raises Refused."""
    if "=" in text:
        lines = [text]
    else:
        try:
            lines = Path(text).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(
                f"map {quote(text)}: {getattr(error, 'strerror', None) or 'it is no text in UTF-8'}"
            ) from None
    maps: dict[str, str] = {}
    for line in filter(None, map(str.strip, lines)):
        theirs, equals, ours = line.partition("=")
        if not equals or not theirs.strip() or not ours.strip():
            raise Refused(f"map {quote(line)}: write THEIRS=OURS")
        maps[theirs.strip()] = ours.strip()
    return maps


# ---- Names here for names there -------------------------------------------------------------------


class _Names:
    """The tensors of this model, and which of them a tensor of the reference is."""

    def __init__(self, model: Model, maps: Mapping[str, str]) -> None:
        self.plain = {tensor.path: t for t, tensor in enumerate(model.tensors)}
        named: dict[str, list[str]] = {}
        for tensor in model.tensors:
            named.setdefault(tensor.name, []).append(tensor.path)
        self.unique = {name: paths[0] for name, paths in named.items() if len(paths) == 1}
        self.model, self.used = model, set[str]()
        self.maps = dict(maps)
        for theirs, ours in maps.items():
            if self._own(ours) is None:
                raise Refused(f"map {theirs}={ours}: this model has no tensor {quote(ours)} of which there is only one")

    def _own(self, ours: str) -> str | None:
        main = f"/{quote(ours)}"
        return ours if ours in self.plain else main if main in self.plain else self.unique.get(ours)

    def of_name(self, theirs: str, *, alone: bool = True) -> str | None:
        """The path here of a tensor that is called so there. alone: nothing else is called so there."""
        mapped = self.maps.get(theirs)
        if mapped is not None:
            self.used.add(theirs)
            return self._own(mapped)
        main = f"/{quote(theirs)}"
        return main if main in self.plain else self.unique.get(theirs) if alone else None

    def of_path(self, theirs: str, alone: Mapping[str, int]) -> str | None:
        """The path here of a tensor that has this path there, with the numbers of runs. alone: how many tensors there
        are of each name."""
        path = parse_path(theirs)
        bare = plain(theirs)
        name = path.tensor or ""
        for said in (bare, name):
            if said in self.maps:
                self.used.add(said)
                return self._in_run(self._own(self.maps[said]) or "", theirs)
        if bare in self.plain:
            return theirs
        target = self.unique.get(name) if alone.get(name) == 1 else None
        return None if target is None else self._in_run(target, theirs)

    @staticmethod
    def _in_run(ours: str, theirs: str) -> str | None:
        """A path with the numbers of runs that another one has; None where they do not lie in as many bodies."""
        runs = [it.into.iteration for it in parse_path(theirs).steps if isinstance(it.into, Body)]
        path = parse_path(ours)
        if sum(isinstance(it.into, Body) for it in path.steps) != len(runs):
            return None
        left = iter(runs)
        steps = tuple(
            replace(it, into=replace(it.into, iteration=next(left))) if isinstance(it.into, Body) else it
            for it in path.steps
        )
        return print_path(replace(path, steps=steps))

    def theirs_of(self, ours: str) -> str:
        """The name there of a tensor of the main graph."""
        return next((a for a, b in self.maps.items() if self._own(b) == f"/{quote(ours)}"), ours)


def _placed(
    text: str,
    written: Mapping[str, Value | Written],
    names_: _Names,
    file: Path | None = None,
    notes: Iterable[str] = (),
) -> Against:
    """Values by path there as values by path here."""
    alone = Counter(parse_path(path).tensor or "" for path in {plain(it) for it in written})
    values: dict[str, Value | Written] = {}
    unmatched: list[str] = []
    for path, value in written.items():
        here = names_.of_path(path, alone)
        if here is None:
            unmatched.append(path)
        else:
            values[here] = value
    return Against(text, values, file, tuple(unmatched), tuple(notes))


def plain(text: str) -> str:
    """A path without the numbers of runs."""
    path = parse_path(text)
    steps = (
        replace(it, into=replace(it.into, iteration=None)) if isinstance(it.into, Body) else it for it in path.steps
    )
    return print_path(replace(path, steps=tuple(steps)))


# ---- Files ----------------------------------------------------------------------------------------


def _of_file(path: Path, given: protocol.Values, place: _Names) -> Against:
    try:
        with path.open("rb") as file:
            head = file.read(4096)
        if head.startswith(b"PK"):
            return _of_npz(path, place)
        if head.startswith(b"{") and b'"sonnx":"trace"' in head.replace(b" ", b""):
            return _of_trace(path, place)
        return _of_model(path, given, place)
    except OSError as error:
        engines = f"; the engines are {', '.join(names())}" if isinstance(error, FileNotFoundError) else ""
        raise Refused(f"{quote(str(path))}: {error.strerror}{engines}") from None
    except (ModelError, Unsupported) as error:
        raise Refused(f"{quote(str(path))}: {error}") from None


def _of_npz(path: Path, place: _Names) -> Against:
    entries = npz_names(path)
    kept = [it for it in entries if not (it.endswith(".dtype") and it.removesuffix(".dtype") in entries)]
    known = {entry_name(tensor.name): tensor.name for tensor in place.model.tensors}
    known |= {entry_name(name): name for name in place.maps}
    values: dict[str, Value | Written] = {}
    unmatched: list[str] = []
    for entry in kept:
        name = known.get(entry, entry)
        here = _of_entry(name, place)
        if here is None:
            unmatched.append(entry)
            continue
        t = place.plain.get(plain(here))
        declared = None if t is None else place.model.tensors[t].declared
        values[here] = read_npz(path, {name: declared})[name]
    return Against(path.name, values, None, tuple(unmatched))


def _of_entry(name: str, place: _Names) -> str | None:
    """The path here of what an entry is called after: a tensor's name, or its path."""
    if name.startswith("/") and name not in place.maps:
        try:
            return place.of_path(name, {})
        except ValueError:
            pass
    return place.of_name(name)


def _of_trace(path: Path, place: _Names) -> Against:
    trace = read_trace(path)
    if trace.broken:
        raise ModelError(f"the chain is broken: {trace.broken}")
    if not trace.values.exists():
        raise ModelError(f"the trace has no values beside it: keep {quote(trace.values.name)} in the same folder")
    entries = [
        it for line in (trace.head, *trace.steps) for key in ("inputs", "writes") for it in _entries(line.get(key))
    ]
    return _placed(path.name, {it: ref for it, ref in entries if ref.offset is not None}, place, trace.values)


def _entries(entries: Json) -> list[tuple[str, Written]]:
    rows = entries if isinstance(entries, list) else []
    return [(str(it.get("tensor")), reference_from_json(it)) for it in rows if isinstance(it, dict)]


# ---- Runs -----------------------------------------------------------------------------------------


class _Kept:
    """An observer that keeps all that a run writes, by path."""

    def __init__(self) -> None:
        self.values: dict[str, Value | Written] = {}
        self.written = 0
        self._applied: tuple[tuple[TensorId, ...], tuple[Value, ...]] = ((), ())

    def begun(self, state: State) -> None:
        """Keeps what is stored in the model."""
        for table in state.stored:
            for t, region in items(table):
                self.values[state.program.model.tensors[t].path] = load_value(state.store, region)

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        """Keeps what a step gave once the frame is there that it belongs to."""
        if isinstance(phase, Apply):
            self._applied = phase.tensors, phase.values
        elif isinstance(phase, Advance):
            for t, value in zip(*self._applied, strict=True):
                self.values[tensor_path(phase.state, t)] = value
                self.written += 1

    def ended(self, state: State) -> None:
        """All is kept."""


def _of_model(path: Path, given: protocol.Values, place: _Names) -> Against:
    model = load(path)
    kept = _Kept()
    inputs = {model.tensors[t].name for t in model.graphs[0].inputs}
    feeds = {theirs: value for name, value in given.items() if (theirs := place.theirs_of(name)) in inputs}
    done = limited_run(model, feeds, kept)
    if isinstance(done, protocol.Failure) and not kept.written:
        raise ModelError(f"the machine does not run it on these inputs: {done.message}")
    notes = [f"the run of {quote(path.name)} ends early: {done.message}"] if isinstance(done, protocol.Failure) else []
    written = {**{f"/{quote(name)}": value for name, value in feeds.items()}, **kept.values}
    return _placed(path.name, written, place, notes=notes)


def _of_engine(text: str, model: Model, source: Path | None, given: protocol.Values, place: _Names) -> Against:
    try:
        engine = started(text)
        session = engine.open(tapped(source_of(model, source)))
        if isinstance(session, protocol.Failure):
            raise Refused(f"{text} does not take the model: {session}")
        try:
            shown = session.run_tapped(given) if isinstance(session, protocol.TappedSession) else session.run(given)
        finally:
            session.close()
    except ModelError as error:
        raise Refused(str(error)) from None
    if isinstance(shown, protocol.Failure):
        raise Refused(f"{text} shows no values: {shown}")
    written = {f"/{quote(name)}": value for name, value in {**given, **shown}.items()}
    note = (
        f"{text} ran with every tensor of the main graph as an output, so that it may fuse less than it does otherwise"
    )
    return _placed(text, written, place, notes=(note,))
