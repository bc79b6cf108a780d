"""Where reference values come from: an .npz file, a trace, an engine, another model on the machine; and which tensor
of this model each of them is of."""

from __future__ import annotations

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
from ...model.path import Body, Step, parse_path, print_path, quote
from ...model.path import Path as Path_
from ...model.values import Value
from ...operators.application import Stuck
from ...resources.persistent import items
from ...runtimes.engines import protocol
from ...runtimes.engines.own import MACHINE, limited_run
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
        if text == MACHINE.name:
            made = _of_model(text, model, given, place)  # with what lies in bodies and calls
        else:
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
        self.unique = {name: paths[0] for name, paths in named.items() if len(paths) == 1 and _once(paths[0])}
        self.holders = {(around, frozenset(it)): step for (around, step), it in anchors_of(_writes(model)).items()}
        self.model, self.used = model, set[str]()
        self.maps = dict(maps)
        for theirs, ours in maps.items():
            if self._own(ours) is None:
                raise Refused(f"map {theirs}={ours}: this model has no tensor {quote(ours)} of which there is only one")
        self.taken = {self._own(ours) for ours in maps.values()}

    def _own(self, ours: str) -> str | None:
        main = f"/{quote(ours)}"
        named = ours if ours in self.plain and _once(ours) else main
        return named if named in self.plain else self.unique.get(ours)

    def of_name(self, theirs: str) -> str | None:
        """The path here of a tensor of the main graph that is called so there."""
        mapped = self.maps.get(theirs)
        if mapped is not None:
            self.used.add(theirs)
            return self._own(mapped)
        main = f"/{quote(theirs)}"
        here = main if main in self.plain else self.unique.get(theirs)
        return None if here in self.taken else here

    def of_path(self, theirs: str, anchors: Anchors) -> str | None:
        """The path here of a tensor that has this path there, with the numbers of runs.

        A tensor in a body or call is found through the node that holds it, known by the names of what it writes, since
        its position in the list of nodes is another one where nodes were added.
        """
        path = parse_path(theirs)
        bare = plain(theirs)
        name = path.tensor or ""
        if bare not in self.maps and not path.steps:
            return self.of_name(name)
        if bare in self.maps:
            self.used.add(bare)
            return self._own(self.maps[bare])
        there: tuple[Step, ...] = ()
        here: tuple[Step, ...] = ()
        for step in path.steps:
            written = frozenset(self._renamed(it, there) for it in anchors.get((there, replace(step, into=None)), ()))
            holder = self.holders.get((tuple(map(_unnumbered, here)), written))
            if holder is None:
                return None
            there, here = (*there, _unnumbered(step)), (*here, replace(holder, into=step.into))
        found = print_path(Path_(here, name))
        return found if plain(found) in self.plain and found not in self.taken else None

    def _renamed(self, theirs: str, around: tuple[Step, ...]) -> str:
        ours = "" if around else self._own(self.maps.get(theirs, "")) or ""
        return parse_path(ours).tensor or theirs if ours else theirs

    def theirs_of(self, ours: str) -> str:
        """The name there of a tensor of the main graph."""
        return next((a for a, b in self.maps.items() if self._own(b) == f"/{quote(ours)}"), ours)


def _once(path: str) -> bool:
    """True for a tensor of which a run has one at most: it lies in no body that has runs."""
    return all(not isinstance(it.into, Body) or it.operator == "If" for it in parse_path(path).steps)


Anchors = Mapping[tuple[tuple[Step, ...], Step], frozenset[str]]
"""For each node, by where it is and its step, the names of the tensors that it, or what it calls, writes there."""


def anchors_of(writes: Iterable[tuple[str, str]]) -> Anchors:
    """The nodes of a model by what they write. writes: paths of nodes, and of tensors that they write."""
    anchors: dict[tuple[tuple[Step, ...], Step], set[str]] = {}
    for node, tensor in writes:
        path = parse_path(tensor)
        around, steps = tuple(map(_unnumbered, path.steps)), parse_path(node).steps
        if len(steps) > len(around) and path.tensor is not None:
            anchors.setdefault((around, replace(steps[len(around)], into=None)), set()).add(path.tensor)
    return {key: frozenset(it) for key, it in anchors.items()}


def _writes(model: Model) -> Iterable[tuple[str, str]]:
    return ((node.path, model.tensors[t].path) for node in model.nodes for t in node.outputs if t is not None)


def _placed(
    text: str,
    written: Mapping[str, Value | Written],
    place: _Names,
    anchors: Anchors,
    file: Path | None = None,
    notes: Iterable[str] = (),
) -> Against:
    """Values by path there as values by path here."""
    values: dict[str, Value | Written] = {}
    unmatched: list[str] = []
    for path, value in written.items():
        here = place.of_path(path, anchors)
        if here is None:
            unmatched.append(path)
        else:
            values[here] = value
    return Against(text, values, file, tuple(unmatched), tuple(notes))


def _unnumbered(step: Step) -> Step:
    return replace(step, into=replace(step.into, iteration=None)) if isinstance(step.into, Body) else step


def plain(text: str) -> str:
    """A path without the numbers of runs."""
    path = parse_path(text)
    return print_path(replace(path, steps=tuple(map(_unnumbered, path.steps))))


# ---- Files ----------------------------------------------------------------------------------------


def _of_file(path: Path, given: protocol.Values, place: _Names) -> Against:
    try:
        with path.open("rb") as file:
            head = file.read(4096)
        if head.startswith(b"PK"):
            return _of_npz(path, place)
        if head.startswith(b"{") and b'"sonnx":"trace"' in head.replace(b" ", b""):
            return _of_trace(path, place)
        return _of_model(path.name, load(path), given, place)
    except OSError as error:
        engines = f"; the engines are {', '.join(names())}" if isinstance(error, FileNotFoundError) else ""
        raise Refused(f"{quote(str(path))}: {error.strerror}{engines}") from None
    except (ModelError, Unsupported) as error:
        named = str(error).startswith(quote(str(path)))
        raise Refused(str(error) if named else f"{quote(str(path))}: {error}") from None


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
            return name if plain(name) in place.plain else None
        except ValueError:
            pass
    return place.of_name(name)


def _of_trace(path: Path, place: _Names) -> Against:
    trace = read_trace(path)
    if trace.broken:
        raise ModelError(f"the chain is broken: {trace.broken}")
    if not trace.values.exists():
        raise ModelError(f"the trace has no values beside it: keep {quote(trace.values.name)} in the same folder")
    written: dict[str, Written] = {}
    writes: list[tuple[str, str]] = []
    for line in (trace.head, *trace.steps):
        for tensor, reference in (*_entries(line.get("inputs")), *_entries(line.get("writes"))):
            writes.append((str(line.get("node", "/")), tensor))
            if reference.offset is not None:
                written[tensor] = reference
    try:
        return _placed(path.name, written, place, anchors_of(writes), trace.values)
    except ValueError as error:
        raise ModelError(f"the trace has a path that is none: {error}") from None


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


def _of_model(text: str, model: Model, given: protocol.Values, place: _Names) -> Against:
    kept = _Kept()
    inputs = {model.tensors[t].name for t in model.graphs[0].inputs}
    feeds = {theirs: value for name, value in given.items() if (theirs := place.theirs_of(name)) in inputs}
    done = limited_run(model, feeds, kept)
    if isinstance(done, protocol.Failure) and not kept.written:
        raise ModelError(f"{quote(text)} does not run on these inputs: {done.message}")
    notes = [f"the run of {quote(text)} ends early: {done.message}"] if isinstance(done, protocol.Failure) else []
    written = {**{f"/{quote(name)}": value for name, value in feeds.items()}, **kept.values}
    return _placed(text, written, place, anchors_of(_writes(model)), notes=notes)


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
    return _placed(text, written, place, {}, notes=(note,))
