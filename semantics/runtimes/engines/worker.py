"""A process that runs a runtime, so that its crash is an outcome and its time can be limited.

Requests and answers are tuples of plain data, pickled one after the other. The worker first answers with its version.
"""

from __future__ import annotations

import pickle
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Final

from .crossing import Plain
from .protocol import Failure, Kind

_TAIL: Final = 300  # characters of what a worker that died has said

_TRACEBACK: Final = "Traceback (most recent call last)"
"""Before what Python says last, which is the line that matters."""


@dataclass
class Worker:
    """A process, started when it is first asked and again after it died. command: how to start it.

    generation: how often it was started; what an earlier one knew is gone.
    """

    command: Sequence[str]
    start_seconds: float = 120.0
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
        except (EOFError, OSError, pickle.UnpicklingError):
            code = process.wait()
            if late.is_set():
                return Failure(Kind.TIMEOUT, f"stopped after {seconds:g} s")
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            said = self._said()
            return Failure(Kind.CRASH, f"the process ended with {how}{f': {said}' if said else ''}")
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
