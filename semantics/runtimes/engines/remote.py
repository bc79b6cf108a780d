"""Engines in processes of their own: a session there, found again after the process died."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from ...errors import ModelError, Unsupported
from ...model.graph import Model
from .crossing import Plain, plain_all, valued
from .protocol import EngineSession, Failure, Kind, Source, Values
from .sources import model_of
from .worker import Worker

SECONDS: Final = 300.0
"""How long opening a model, and running it, may each take."""


@dataclass
class RemoteEngine:
    """An engine whose code runs in a worker. options: what the worker is told with each model.

    missing: why there is no such engine here, "" where there is one.
    """

    name: str
    command: Sequence[str]
    options: tuple[tuple[str, str], ...] = ()
    seconds: float = SECONDS
    missing: str = ""
    worker: Worker = field(init=False)
    _last: int = 0

    def __post_init__(self) -> None:
        self.worker = Worker(self.command)
        atexit.register(self.worker.stop)

    @property
    def version(self) -> str:
        """What the worker says; "" where it does not start."""
        return "" if self.missing or self.worker.start() is not None else self.worker.version

    def unusable(self) -> str:
        """Why nothing can be run, "" where the worker starts."""
        failed = None if self.missing else self.worker.start()
        return self.missing if failed is None else failed.message

    def open(self, source: Source) -> EngineSession | Failure:
        """A session in the worker."""
        if self.missing:
            return Failure(Kind.ERROR, self.missing)
        try:
            model = model_of(source)
        except Unsupported as error:
            return Failure(Kind.UNSUPPORTED, str(error))
        except ModelError as error:
            return Failure(Kind.INVALID, str(error))
        self._last += 1
        session = RemoteSession(self, source, model, self._last)
        failed = session.opened()
        return session if failed is None else failed


@dataclass
class RemoteSession:
    """A model in the worker, under a number. generation: of the worker that knows it."""

    engine: RemoteEngine
    source: Source
    model: Model
    number: int
    generation: int = 0

    def opened(self) -> Failure | None:
        """Opens the session in the worker that runs, unless it is; why it cannot be."""
        failed = self.engine.worker.start()
        if failed is not None:
            return failed
        if self.generation == self.engine.worker.generation:
            return None
        content: Plain = str(self.source) if isinstance(self.source, Path) else self.source
        answer = self._ask(("open", self.number, content, list(self.engine.options)))
        if isinstance(answer, Failure):
            return answer
        self.generation = self.engine.worker.generation
        return None

    def run(self, feeds: Values) -> Values | Failure:
        """The outputs by name."""
        failed = self.opened()
        if failed is not None:
            return failed
        answer = self._ask(("run", self.number, plain_all(feeds)))
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
            self._ask(("close", self.number))

    def _ask(self, request: Plain) -> Plain | Failure:
        answer = self.engine.worker.ask(request, self.engine.seconds)
        match answer:
            case Failure():
                return answer
            case ("ok", payload):
                return payload
            case ("failed", str(kind), str(message)):
                return Failure(Kind(kind), " ".join(message.split())[:600])
            case _:
                return Failure(Kind.ERROR, "the worker gives no answer that can be read")
