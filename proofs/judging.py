"""The theorems judged: proved one after the other, while other processes put what is proved through its gates."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from sonnx.spec.progress import Progress

from . import gates, suite
from .gates import Gate, Need
from .standard import Dropped
from .suite import Result
from .theory import Theory

SOLVERS = 2
"""How many of the gates are solvers that prove the theorem again."""
WORK: dict[str, Callable[..., Gate | Need]] = {
    "z3": lambda _theory, obligations, seed: gates.on_seeds(obligations, seed),
    "cvc5": lambda _theory, obligations: gates.by_cvc5(obligations),
    "model": gates.satisfiable,
    "need": gates.dropped,
}
"""What a process does for a theorem."""


Shared = dict[tuple[Dropped, tuple[str, ...]], "Future[Gate | Need]"]
"""What was asked of a law or a lemma, by it and the names of the obligations: theorems proved together share it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A theorem with its gates, empty where they were not asked or it is not proved, and what it needs."""

    result: Result
    gates: tuple[Gate, ...] = ()
    needs: tuple[Need, ...] = ()

    @property
    def passed(self) -> bool:
        """Proved, and no gate failed."""
        return self.result.theorem is not None and all(gate.status != "failed" for gate in self.gates)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A proved theorem and what the processes will say: z3, cvc5, model, then one answer for each need."""

    result: Result
    answers: tuple[Future[Gate | Need], ...]

    def judged(self) -> Judged:
        """Waits for the answers."""
        made = [answer.result() for answer in self.answers]
        needs = tuple(it for it in made if isinstance(it, Need))
        found = tuple(it for it in made if isinstance(it, Gate))
        return Judged(self.result, (*found, *([gates.tight(needs)] if len(found) > SOLVERS else [])), needs)


@dataclass(frozen=True, slots=True)
class Options:
    """gated: with the gates. lemmas: all gates of lemmas too.

    shown: with a countermodel for each hypothesis that is needed. seed: added to the seeds of
    z3. jobs: processes, one for each core where it is None.
    """

    gated: bool = True
    shown: bool = False
    seed: int = 0
    jobs: int | None = None
    lemmas: bool = False


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
        for count, result in enumerate(suite.results(theory, order)):
            said(f"proved {result.stated.name}", count + 1, len(order))
            chosen = names is None or result.stated.name in names
            waiting.append(_Waiting(result, _asked(pool, theory, result, options, shared) if chosen else ()))
        for count, found in enumerate(waiting):
            said(f"gates of {found.result.stated.name}", count, len(waiting))
            yield found.judged()


def _silent(_what: str, _done: int, _total: int) -> None:
    pass


def _asked(
    pool: ProcessPoolExecutor, theory: Theory, result: Result, options: Options, shared: Shared
) -> tuple[Future[Gate | Need], ...]:
    """The work on a theorem, handed out; none on what is not proved. shared: answers on what was proved together."""
    if result.theorem is None:
        return ()
    name, obligations = result.stated.name, result.obligations

    def need(hypothesis: Dropped) -> Future[Gate | Need]:
        key = hypothesis, tuple(it.name for it in result.together)
        if key not in shared or hypothesis[0] not in ("law", "lemma"):
            shared[key] = pool.submit(_work, "need", (name, hypothesis, result.together, options.shown))
        return shared[key]

    solvers = pool.submit(_work, "z3", (obligations, options.seed)), pool.submit(_work, "cvc5", (obligations,))
    if result.lemma and not options.lemmas:
        return solvers
    return (
        *solvers,
        pool.submit(_work, "model", (name, obligations)),
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


def _work(kind: str, arguments: tuple[object, ...]) -> Gate | Need:
    return WORK[kind](_theory[0], *arguments)
