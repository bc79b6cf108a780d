"""Engines in processes of their own: values on the way, the process, and a session there, found again after it died."""

from __future__ import annotations

import atexit
import pickle
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, cast

import numpy as np

from ...errors import ModelError, Unsupported
from ...machine.memory import type_of
from ...model.elements import decode, element_of, encode
from ...model.graph import Model, ValueType
from ...model.values import Map, Optional, Value
from ...model.values import Sequence as SequenceValue
from .protocol import EngineSession, Failure, Kind, Source, Values
from .sources import model_of

Plain = None | str | bytes | int | list["Plain"] | tuple["Plain", ...]


def plain(value: Value) -> Plain:
    """A value as plain data."""
    match value:
        case SequenceValue(items=items):
            return ("sequence", [plain(item) for item in items])
        case Optional(item=item):
            return ("optional", None if item is None else plain(item))
        case Map(key=key, items=pairs):
            return ("map", key, [(k, plain(v)) for k, v in pairs])
        case _:
            element = element_of(value.dtype)
            content: Plain = list(value.reshape(-1).tolist()) if element == "string" else bytes(encode(value))
            return ("tensor", element, list(value.shape), content)


def valued(data: Plain, declared: ValueType | None = None) -> Value:
    """The value of plain data; the declared type says of what an empty sequence or optional is."""
    inner = None if declared is None else declared.inner
    if declared is not None and declared.kind == "optional" and not (isinstance(data, tuple) and data[0] == "optional"):
        data = ("optional", data)  # runtimes give the value itself
    match data:
        case ("tensor", "string", list(shape), list(texts)):
            made = np.empty(len(texts), object)
            made[:] = texts
            made = made.reshape(cast("list[int]", shape))
            made.flags.writeable = False
            return made
        case ("tensor", str(element), list(shape), bytes(content)):
            return decode(content, element, tuple(cast("list[int]", shape)))
        case ("sequence", list(items)):
            made_items = tuple(valued(item, inner) for item in items)
            return SequenceValue(_inner(made_items, inner), made_items)
        case ("optional", item):
            held = None if item is None else valued(item, inner)
            return Optional(_inner(() if held is None else (held,), inner), held)
        case ("map", str(key), list(pairs)):
            known = [(cast("int | bytes", k), valued(v, inner)) for k, v in cast("list[tuple[Plain, Plain]]", pairs)]
            known.sort(key=lambda pair: pair[0])
            return Map(key, _inner(tuple(v for _, v in known), inner), tuple(known))
        case _:
            raise TypeError(f"no plain value: {type(data).__name__}")


def _inner(items: tuple[Value, ...], declared: ValueType | None) -> ValueType:
    type_ = type_of(items[0]) if items else declared or ValueType("tensor")
    return ValueType(type_.kind, type_.element, inner=type_.inner)


# ---- The process ----------------------------------------------------------------------------------

_TAIL: Final = 300  # characters of what a worker that died has said

_UNREADABLE: Final = (pickle.UnpicklingError, ValueError, TypeError, LookupError, AttributeError, ImportError)
"""What comes of bytes that are no answer, or a part of one."""

_TRACEBACK: Final = "Traceback (most recent call last)"
"""Before what Python says last, which is the line that matters."""


@dataclass
class Worker:
    """A process, started when it is first asked and again after it died. command: how to start it.

    descriptors: open files that it inherits. generation: how often it was started; what an earlier one knew is gone.
    """

    command: Sequence[str]
    start_seconds: float = 120.0
    descriptors: Sequence[int] = ()
    generation: int = 0
    version: str = ""
    _process: subprocess.Popen[bytes] | None = None
    _noise: IO[bytes] | None = None
    _folder: tempfile.TemporaryDirectory[str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> Failure | None:
        """Starts the process unless it runs; why it does not."""
        with self._lock:
            return self._started()

    def ask(self, request: Plain, seconds: float) -> Plain | Failure:
        """The answer to a request."""
        with self._lock:
            failed = self._started()
            return self._exchange(request, seconds) if failed is None else failed

    def stop(self) -> None:
        """Ends the process."""
        with self._lock:
            self._end()

    def _started(self) -> Failure | None:
        if self._process is not None and self._process.poll() is None:
            return None
        self._end()
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._noise = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._noise,
                cwd=self._folder.name,
                pass_fds=self.descriptors,
            )
        except OSError as error:
            return Failure(Kind.ERROR, f"the worker does not start: {error}")
        self.generation += 1
        hello = self._exchange(None, self.start_seconds)
        if isinstance(hello, Failure):
            return Failure(Kind.ERROR, f"the worker does not start: {hello.message}")
        self.version = hello if isinstance(hello, str) else ""
        return None

    def _exchange(self, request: Plain, seconds: float) -> Plain | Failure:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return Failure(Kind.ERROR, "the worker does not run")
        late = threading.Event()

        def over() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, over)
        timer.start()
        try:
            if request is not None:
                pickle.dump(request, process.stdin, protocol=4)
                process.stdin.flush()
            answer: Plain = pickle.load(process.stdout)  # the process is our own, and sends plain data
            return answer
        except (EOFError, BrokenPipeError, *_UNREADABLE) as error:
            if isinstance(error, _UNREADABLE) and _runs_on(process):
                self._end()
                return Failure(Kind.CRASH, "the process gives no answer that can be read, and was stopped")
            code = process.wait()
            if late.is_set():
                return Failure(Kind.TIMEOUT, f"stopped after {seconds:g} s")
            how = _signal(-code) if code < 0 else f"exit code {code}"
            said = self._said()
            return Failure(Kind.CRASH, f"the process ended with {how}{f': {said}' if said else ''}")
        except BaseException:  # an interrupt, say: the answer that still comes would pass for that to the next request
            self._end()
            raise
        finally:
            timer.cancel()

    def _said(self) -> str:
        if self._noise is None:
            return ""
        self._noise.seek(0)
        text = self._noise.read().decode("utf-8", "replace").rstrip()
        said = text.rpartition("\n")[2] if text.rfind(_TRACEBACK) >= 0 else " ".join(text.split())
        return said[-_TAIL:]

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    try:
                        stream.close()
                    except OSError:  # what it had not read
                        continue
        if self._noise is not None:
            self._noise.close()
            self._noise = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _runs_on(process: subprocess.Popen[bytes]) -> bool:
    """False where a process ends in a moment: what it said last is cut off then."""
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        return True
    return False


def _signal(number: int) -> str:
    name = next((it.name for it in signal.Signals if it == number), "")
    return f"signal {number}{name and f' ({name})'}"


# ---- Sessions -------------------------------------------------------------------------------------

Options = tuple[tuple[str, str], ...]
"""Names and what they stand for, as the worker knows them."""
SECONDS: Final = 300.0
"""The seconds that opening a model, and running it, may each take."""


@dataclass
class RemoteEngine:
    """An engine whose code runs in a worker. options: what the worker is told with each model.

    missing: why there is no such engine here, "" where there is one. descriptors: open files that the worker inherits.
    """

    name: str
    command: Sequence[str]
    options: Options = ()
    seconds: float = SECONDS
    missing: str = ""
    descriptors: Sequence[int] = ()
    worker: Worker = field(init=False)
    _last: int = 0

    def __post_init__(self) -> None:
        self.worker = Worker(self.command, descriptors=self.descriptors)
        atexit.register(self.worker.stop)

    @property
    def version(self) -> str:
        """The answer of the worker; "" where it does not start."""
        return "" if self.missing or self.worker.start() is not None else self.worker.version

    def unusable(self) -> str:
        """Why nothing can be run, "" where the worker starts."""
        failed = None if self.missing else self.worker.start()
        return self.missing if failed is None else failed.message

    def open(self, source: Source, options: Options = ()) -> EngineSession | Failure:
        """A session in the worker. options: in place of those of the engine that have the same names."""
        if self.missing:
            return Failure(Kind.ERROR, self.missing)
        try:
            model = model_of(source)
        except Unsupported as error:
            return Failure(Kind.UNSUPPORTED, str(error))
        except ModelError as error:
            return Failure(Kind.INVALID, str(error))
        self._last += 1
        session = RemoteSession(self, source, model, self._last, self.told(options))
        failed = session.opened()
        return session if failed is None else failed

    def told(self, options: Options) -> Options:
        """The options of the engine with others in place of those that have the same names."""
        return tuple((dict(self.options) | dict(options)).items())

    def ask(self, request: Plain) -> Plain | Failure:
        """What the worker answers to a request of its own kind."""
        answer = Failure(Kind.ERROR, self.missing) if self.missing else self.worker.ask(request, self.seconds)
        match answer:
            case Failure():
                return answer
            case ("ok", payload):
                return payload
            case ("failed", str(kind), str(message)):
                return Failure(Kind(kind), " ".join(message.split())[:600])
            case _:
                return Failure(Kind.ERROR, "the worker gives no answer that can be read")


@dataclass
class RemoteSession:
    """A model in the worker, under a number. options: what the worker is told with it. generation: of the worker that
    knows it."""

    engine: RemoteEngine
    source: Source
    model: Model
    number: int
    options: Options = ()
    generation: int = 0

    def opened(self) -> Failure | None:
        """Opens the session in the worker that runs, unless it is; why it cannot be."""
        failed = self.engine.worker.start()
        if failed is not None:
            return failed
        if self.generation == self.engine.worker.generation:
            return None
        content: Plain = str(self.source) if isinstance(self.source, Path) else self.source
        answer = self.engine.ask(("open", self.number, content, list(self.options)))
        if isinstance(answer, Failure):
            return answer
        self.generation = self.engine.worker.generation
        return None

    def run(self, feeds: Values) -> Values | Failure:
        """The outputs by name."""
        failed = self.opened()
        if failed is not None:
            return failed
        answer = self.engine.ask(("run", self.number, [(name, plain(value)) for name, value in feeds.items()]))
        if isinstance(answer, Failure):
            return answer
        main = self.model.graphs[0]
        types = {self.model.tensors[t].name: self.model.tensors[t].declared for t in main.outputs}
        pairs = cast("list[tuple[str, Plain]]", answer)
        try:
            return {name: valued(data, types.get(name)) for name, data in pairs}
        except (TypeError, ValueError) as error:
            return Failure(Kind.ERROR, f"the worker gives no values: {error}")

    def close(self) -> None:
        """Lets the worker forget the model."""
        if self.generation == self.engine.worker.generation:
            self.engine.ask(("close", self.number))
