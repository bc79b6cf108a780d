"""onnxruntime on the CPU, as shipped and with its optimisations off, in a process of its own.

It is that of this interpreter (extra `ort`), or of the one that SONNX_ONNXRUNTIME names, which needs nothing of ours.
Its optimizers are switched off by the names of `disabled_optimizers`, the argument of its InferenceSession.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final, cast

from .protocol import EngineSession, Failure, Kind, Optimized, Pass, Source, Switches
from .remote import Options, RemoteEngine

RULES: Final = "_RuleBasedTransformer"
"""The end of the names of those transformers that apply rules, which have names of their own."""


@dataclass(frozen=True, slots=True)
class OnnxRuntime:
    """The engine, with its optimizers."""

    remote: RemoteEngine
    levels: tuple[str, ...] = ("disabled", "basic", "extended", "all")

    @property
    def name(self) -> str:
        """The name on the command line."""
        return self.remote.name

    @property
    def version(self) -> str:
        """That of the library; "" where its process does not start."""
        return self.remote.version

    def unusable(self) -> str:
        """Why nothing can be run, "" where its process starts."""
        return self.remote.unusable()

    def open(self, source: Source) -> EngineSession | Failure:
        """A session with the optimizers of the engine's level."""
        return self.remote.open(source)

    def limited(self, seconds: float) -> OnnxRuntime:
        """The same in a process of its own, which may take so long for each request."""
        return replace(self, remote=replace(self.remote, seconds=seconds))

    def close(self) -> None:
        """Ends the process."""
        self.remote.worker.stop()

    def switched(self, source: Source, switches: Switches, *, apart: bool) -> EngineSession | Failure:
        """A session with the optimizers that may run."""
        if apart:
            self.remote.worker.stop()
        return self.remote.open(source, _options(switches))

    def optimized(self, source: Source, switches: Switches) -> Optimized | Failure:
        """The model that onnxruntime stores after optimizing, and what its log says of the optimizers."""
        content = str(source) if isinstance(source, Path) else source
        answer = self.remote.ask(("optimize", content, list(self.remote.told(_options(switches)))))
        match answer:
            case Failure():
                return answer
            case (bytes() | None as made, list(ran), failed):
                known = cast("list[tuple[int, str, bool]]", ran)
                why = cast("tuple[str, str] | None", failed)
                failure = None if why is None else Failure(Kind(why[0]), " ".join(why[1].split()))
                return Optimized(made, tuple(Pass(name, level, changed) for level, name, changed in known), failure)
            case _:
                return Failure(Kind.ERROR, "the worker gives no answer that can be read")

    def parts(self, name: str) -> tuple[str, ...]:
        """The names that the library may give to rules, and to anything else."""
        answer = self.remote.ask(("names",)) if not name or name.endswith(RULES) else []
        return () if isinstance(answer, Failure) else tuple(cast("list[str]", answer))

    def advice(self, names: Sequence[str]) -> str:
        """The argument of the session; in C and C++ it is an entry of the session's options."""
        listed = ", ".join(f'"{name}"' for name in names)
        entry = f"optimization.disable_specified_optimizers={';'.join(names)}"
        return f"InferenceSession(..., disabled_optimizers=[{listed}]), or the configuration entry {entry}"


def _options(switches: Switches) -> Options:
    level = (("optimize", switches.level),) if switches.level else ()
    return (*level, ("off", " ".join(sorted(switches.off))))


def onnxruntime(name: str, level: str, threads: int = 1) -> OnnxRuntime:
    """An engine with an optimisation level, all or disabled."""
    named = os.environ.get("SONNX_ONNXRUNTIME")
    there = bool(named) or find_spec("onnxruntime") is not None
    missing = "" if there else "onnxruntime is not installed: install sonnx[ort], or set SONNX_ONNXRUNTIME to a Python"
    command = (named or sys.executable, str(Path(__file__).with_name("onnxruntime_worker.py")))
    remote = RemoteEngine(name, command, (("optimize", level), ("threads", str(threads))), missing=missing)
    return OnnxRuntime(remote)


OPTIMIZED = onnxruntime("onnxruntime", "all")
DISABLED = onnxruntime("onnxruntime-disabled", "disabled")
