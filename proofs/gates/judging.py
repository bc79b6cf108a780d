"""The theorems judged: proved one after the other, while other processes put what is proved through its gates."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sonnx.spec.terminal import Progress

from ..kernel.theory import Theory
from ..models.standard import Dropped
from . import gates, suite
from .gates import Gate, Need
from .suite import Result

Said = tuple[Gate | Need, ...]
WORK: dict[str, Callable[..., Said]] = {
    "z3": lambda _theory, obligations, seed: (gates.on_seeds(obligations, seed),),
    "cvc5": lambda _theory, obligations, folder: gates.by_cvc5(obligations, folder),
    "model": lambda theory, name, obligations: (gates.satisfiable(theory, name, obligations),),
    "countermodel": lambda theory, name: (gates.countermodel(theory, name),),
    "situation": lambda theory, name: (gates.situation(theory, name),),
    "need": lambda *asked: (gates.dropped(*asked),),
}
"""The work of a process for a theorem, or once for all."""


Shared = dict[tuple[Dropped, tuple[str, ...]], "Future[Said]"]
"""The answers on a law or a lemma, by it and the names of the obligations: theorems proved together share it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A theorem with its gates, empty where they were not asked or it is not proved, and what it needs. situations:
    what became of each situation of the text, which is the same for all that are judged together.
    """

    result: Result
    gates: tuple[Gate, ...] = ()
    needs: tuple[Need, ...] = ()
    situations: tuple[Gate, ...] = ()

    @property
    def passed(self) -> bool:
        """Proved, and no gate failed."""
        return self.result.theorem is not None and all(gate.status != "failed" for gate in self.gates)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A proved theorem and what the processes will say: of it, and of the situations of the text."""

    result: Result
    answers: tuple[Future[Said], ...]
    situations: tuple[Future[Said], ...]

    def judged(self) -> Judged:
        """Waits for the answers."""
        if not self.answers:
            return Judged(self.result)
        made = [it for answer in self.answers for it in answer.result()]
        needs = tuple(it for it in made if isinstance(it, Need))
        possible = [it for answer in self.situations for it in answer.result() if isinstance(it, Gate)]
        gates_by_name = {it.name: it for it in made if isinstance(it, Gate)}
        gates_by_name |= {it.name: it for it in (gates.tight(needs), gates.situations(possible))}
        return Judged(self.result, tuple(gates_by_name[name] for name in gates.GATES), needs, tuple(possible))


@dataclass(frozen=True, slots=True)
class Options:
    """gated: with the gates. shown: with a countermodel for each hypothesis that is needed. seed: added to the seeds of
    z3. jobs: processes, one for each core where it is None. proofs: a folder for the proofs of cvc5.
    """

    gated: bool = True
    shown: bool = False
    seed: int = 0
    jobs: int | None = None
    proofs: Path | None = None


def judge(
    theory: Theory, names: Sequence[str] | None, options: Options, tell: Progress | None = None
) -> Iterator[Judged]:
    """The theorems in the order of part 6, those that the chosen ones rest on included, which pass no gates then.

    names: None for all.
    """
    order = suite.with_lemmas(theory, suite.theorems(theory) if names is None else names)
    said = tell if tell is not None else _silent
    if not options.gated:
        for count, result in enumerate(suite.results(theory, order)):
            said(f"proved {result.stated.name}", count + 1, len(order))
            yield Judged(result)
        return
    with _processes(theory, options.jobs or len(os.sched_getaffinity(0))) as pool:
        waiting: list[_Waiting] = []
        shared: Shared = {}
        stated = [it.name for it in theory.text.properties.values() if it.kind == "situation"]
        situations = tuple(pool.submit(_work, "situation", (name,)) for name in stated)
        for count, result in enumerate(suite.results(theory, order)):
            said(f"proved {result.stated.name}", count + 1, len(order))
            chosen = names is None or result.stated.name in names
            asked = _asked(pool, theory, result, options, shared) if chosen else ()
            waiting.append(_Waiting(result, asked, situations))
        for count, entry in enumerate(waiting):
            said(f"gates of {entry.result.stated.name}", count, len(waiting))
            yield entry.judged()


def _silent(_what: str, _done: int, _total: int) -> None:
    pass


def _asked(
    pool: ProcessPoolExecutor, theory: Theory, result: Result, options: Options, shared: Shared
) -> tuple[Future[Said], ...]:
    """The work on a theorem, handed out; none on what is not proved. shared: answers on what was proved together."""
    if result.theorem is None:
        return ()
    name, obligations = result.stated.name, result.obligations

    def need(hypothesis: Dropped) -> Future[Said]:
        key = hypothesis, tuple(it.name for it in result.together)
        if key not in shared or hypothesis[0] not in ("law", "lemma"):
            shared[key] = pool.submit(_work, "need", (name, hypothesis, result.together, options.shown))
        return shared[key]

    return (
        pool.submit(_work, "z3", (obligations, options.seed)),
        pool.submit(_work, "cvc5", (obligations, options.proofs)),
        pool.submit(_work, "model", (name, obligations)),
        pool.submit(_work, "countermodel", (name,)),
        *(need(hypothesis) for hypothesis in gates.needs_of(theory, name)),
    )


# ---- In worker processes ----------------------------------------------------------------------

_theory: list[Theory] = []
"""The theory of this process, which it has from the one that started it."""


@contextmanager
def _processes(theory: Theory, jobs: int) -> Iterator[ProcessPoolExecutor]:
    """The processes; they are forked before z3 is used here, since its threads do not survive a fork."""
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _begin, (theory,))
    try:
        pool.submit(os.getpid).result()
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    pool.shutdown()


def _begin(theory: Theory) -> None:
    """An interrupt is for the process that hands out the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _theory.append(theory)


def _work(kind: str, arguments: tuple[object, ...]) -> Said:
    return WORK[kind](_theory[0], *arguments)
