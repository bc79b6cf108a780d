"""Many models in one call: which files are meant, and the outcome of each, several side by side.

Each model is judged by a process of its own, forked when the specification has been read: what one of them breaks, a
file that cannot be read or memory that ends, stops no other. It must not know how outcomes are shown.
"""

from __future__ import annotations

import glob
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from sonnx.semantics.errors import InternalError, ModelError, Unsupported
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load
from sonnx.spec.terminal import LINE, Progress

from .report import EXIT, INTERNAL, STANDARD_INPUT, UNREADABLE, Outcome, Verdict

SUFFIX = ".onnx"
"""The models of a folder are the files below it with this suffix."""


class NoModelError(ModelError):
    """A folder or pattern without a model."""


Judge = Callable[[str], Outcome]
"""The outcome for the model of a name; raises what is wrong with it."""


# ---- Which models -------------------------------------------------------------------------------


def is_batch(names: Sequence[str]) -> bool:
    """True where the names may stand for other than one file."""
    return len(names) != 1 or (names[0] != STANDARD_INPUT and (Path(names[0]).is_dir() or _is_pattern(names[0])))


def expand(names: Sequence[str]) -> list[str]:
    """The files that names stand for, each once: of a folder the models below it, of a pattern the files that
    match it (`*`, `?`, `[...]`, `**`), sorted. Raises NoModelError for a folder or a pattern without any.
    """
    files: list[str] = []
    for name in names:
        if name != STANDARD_INPUT and Path(name).is_dir():
            inside = sorted(str(path) for path in Path(name).rglob(f"*{SUFFIX}") if path.is_file())
            if not inside:
                raise NoModelError(f"{name}: no file *{SUFFIX} in this folder or below it; name a folder with models")
            files += inside
        elif _is_pattern(name):
            every = glob.glob(name, recursive=True)  # noqa: PTH207 - pathlib's patterns have no absolute ones
            matching = sorted(path for path in every if Path(path).is_file())
            if not matching:
                raise NoModelError(f"{name}: no file matches this pattern; quote it if the shell must not expand it")
            files += matching
        else:
            files.append(name)
    return list(dict.fromkeys(files))


def standard_input() -> Callable[[], Model]:
    """The model that standard input holds, which is read now; calling it raises the ModelError where it holds none.

    It has no folder: external data are not found.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "stdin")
        file.write_bytes(sys.stdin.buffer.read())
        try:
            model = load(file)
        except ModelError as error:
            text = str(error).replace(f'"{file}"', "standard input").replace(str(file), "standard input")
            return partial(_refuse, text)
    return lambda: model


def _refuse(text: str) -> Model:
    raise ModelError(text)


def _is_pattern(name: str) -> bool:
    return glob.has_magic(name) and not Path(name).exists()


# ---- Their outcomes -----------------------------------------------------------------------------


def outcome(name: str, judge: Judge) -> Outcome:
    """The outcome for one file, in this process. Never raises for what is wrong with a model."""
    try:
        return judge(name)
    except ModelError as error:
        return Outcome(name, UNREADABLE, error=" ".join(str(error).split()))
    except Unsupported as error:
        return Outcome(name, EXIT[Verdict.UNDECIDED], error=" ".join(str(error).split()))
    except OSError as error:
        return Outcome(name, UNREADABLE, error=f"{name}: {error.strerror or error}")
    except Exception as error:  # a defect in one outcome must not take the others along
        return Outcome(name, INTERNAL, error=f"{name}: internal error: {type(error).__name__}: {error}")


def outcomes(names: Sequence[str], judge: Judge, jobs: int | None, tell: Progress) -> Iterator[Outcome]:
    """The outcome for each file, in the order of the names. jobs: how many are at work at once, None for as many as
    there are processors.

    When the caller stops early, by an interrupt too, every process that is at work is ended, with its children.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        for done, name in enumerate(names):
            tell(f"certifying {name}", done, len(names))
            yield outcome(name, judge)
        return
    jobs = jobs or os.cpu_count() or 1
    waiting = list(enumerate(names))
    working: dict[Connection, tuple[int, BaseProcess]] = {}
    ready: dict[int, Outcome] = {}
    given = 0
    try:
        while given < len(names):
            while waiting and len(working) < jobs:
                position, name = waiting.pop(0)
                end, process = _begin(name, judge)
                working[end] = position, process
            tell("certifying", given + len(ready), len(names))
            ended = set(wait(list(working), LINE))
            for end in [end for end in working if end in ended]:
                position, process = working[end]
                ready[position] = _received(end, names[position])
                process.join()
                del working[end]
            while given in ready:
                yield ready.pop(given)
                given += 1
    finally:
        for end, (_, process) in working.items():
            _stop(process)
            end.close()


def _begin(name: str, judge: Judge) -> tuple[Connection, BaseProcess]:
    context = multiprocessing.get_context("fork")
    end, other = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(name, judge, other))
    process.start()
    other.close()
    return end, process


def _work(name: str, judge: Judge, end: Connection) -> None:
    os.setsid()  # a group of its own, so that it can be ended with the processes that it starts
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(BrokenPipeError):
        end.send(outcome(name, judge))


def _received(end: Connection, name: str) -> Outcome:
    try:
        received = end.recv()
    except EOFError:
        short = "the process that judged it ended before its work; memory may be short: use fewer --jobs"
        return Outcome(name, INTERNAL, error=f"{name}: {short}")
    finally:
        end.close()
    if not isinstance(received, Outcome):
        raise InternalError(f"the process that judged {name} sent {type(received).__name__}")
    return received


def _stop(process: BaseProcess) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.kill()
    process.join()
