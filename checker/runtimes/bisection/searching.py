"""The search: from a result that is not allowed to the optimizers without which it is."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from sonnx.semantics.errors import InternalError
from sonnx.semantics.machine.judging import Judged, Standing
from sonnx.semantics.runtimes.engines.protocol import Failure, Optimized, Optimizing, Source, Switches, Values
from sonnx.spec.terminal import few

from ..differential.comparison import against
from ..differential.outcomes import Case
from ..differential.reduction import in_memory
from .changes import Change, change
from .halving import least, needed
from .reducing import Smallest, changed_parts, smallest
from .rules import Rule, refuting
from .trials import Answer, Bench, Criterion, Outcome, OutOfTime, question

Tell = Callable[[str], None]
MOST: Final = 8
"""Sets of optimizers that are looked for, one independent of the other."""
SHOWN: Final = 3
"""The most parts that a reason names."""
SHARE: Final = 0.7
"""Of the time that the search may take; the rest is for making the case small."""
LIKELY: Final = re.compile(r"Fus|Elimin|Fold|Rewrit|Remov|Shar|Transform|Optim|Propag|Clean|Normaliz|Convert")
"""Words of the names of optimizers: names that have one are tried before all others."""


class Verdict(StrEnum):
    """The outcome of a bisection."""

    GUILTY = "guilty"
    RIGHT = "nothing wrong"
    PLAIN = "wrong without optimizers too"
    UNDECIDED = "undecided"


EXIT: Final = {Verdict.GUILTY: 1, Verdict.RIGHT: 0, Verdict.PLAIN: 1, Verdict.UNDECIDED: 3}


@dataclass(frozen=True, slots=True)
class Guilty:
    """Optimizers that together, and with no other, lead to the result; none of them can be left out.

    changes: what they do to the model, all together where the engine tells, else each alone. rules: rewrites of the
    specification that are said to be theirs, refuted ones first, where they apply the operators that are changed.
    """

    names: tuple[str, ...]
    changes: tuple[tuple[tuple[str, ...], Change], ...]
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Bisection:
    """What was found out. label: of the inputs. reason: one line. default, plain: with all optimizers that the engine
    uses by itself, and with none. level: the lowest at which the result is the same, "" where it is not known.

    guilty: sets of optimizers, each wrong by itself. remedy: the fewest that have to be off so that the result is as
    without optimizers, None where that was not found. narrowed: where the search came to no end, the names among which
    the guilty are. part: the nodes that were asked alone, "" for the whole model, of which `whole` then tells. stopped:
    what ended the work before its time.
    """

    label: str
    verdict: Verdict
    reason: str
    criterion: Criterion
    default: Outcome | None = None
    plain: Outcome | None = None
    level: str = ""
    guilty: tuple[Guilty, ...] = ()
    remedy: tuple[str, ...] | None = None
    smallest: Smallest | None = None
    narrowed: tuple[str, ...] = ()
    runs: int = 0
    part: str = ""
    whole: Bisection | None = None
    stopped: KeyboardInterrupt | None = None

    @property
    def differs(self) -> bool:
        """The outputs with and without optimizers are there, and are not the same bit by bit."""
        return any(it.standing is not Standing.EXACT for _, it in self.distance)

    @property
    def distance(self) -> tuple[tuple[str, Judged], ...]:
        """The outputs with optimizers against those without; empty where one of the two has none."""
        if self.default is None or self.plain is None or not self.default.outputs or not self.plain.outputs:
            return ()
        return against(self.plain.outputs, self.default.outputs)


def bisect(
    engine: Optimizing, source: Source, label: str, feeds: Values, *, criterion: Criterion, seconds: float, tell: Tell
) -> Bisection:
    """The optimizers to blame for what an engine makes of a model with these inputs.

    Where the specification decides and the whole model shows nothing, the parts that optimizers change are asked one by
    one, each on the values that the machine gives it: the bound of a part is tighter than that of the whole.
    Raises ModelError for a model that cannot be read.
    """
    until = time.monotonic() + seconds
    own = engine.limited(max(5.0, seconds / 3))
    try:
        whole = _bisected(own, source, label, feeds, criterion, until, tell)
        shown = whole.default is None or whole.default.answer in (Answer.OUTSIDE, Answer.FAILED)
        if shown or criterion is Criterion.BITS or not whole.differs:
            return whole
        try:
            return _by_parts(own, whole, source, feeds, until, tell)
        except KeyboardInterrupt as stop:
            return replace(whole, reason=f"{whole.reason}; not every part was asked alone", stopped=stop)
    finally:
        own.close()


def _bisected(
    engine: Optimizing, source: Source, label: str, feeds: Values, criterion: Criterion, until: float, tell: Tell
) -> Bisection:
    """The same for the whole model."""
    tell("the machine runs the model")
    asked = question(source, feeds, criterion)
    if isinstance(asked, Failure):
        return Bisection(label, Verdict.UNDECIDED, f"the specification gives no result: {asked}", criterion)
    bench = Bench(engine, asked, until - (1 - SHARE) * (until - time.monotonic()), tell)
    start, bench = _begun(bench, label)
    return _Search(bench, start).done(until) if start.verdict is Verdict.GUILTY else start


def _begun(bench: Bench, label: str) -> tuple[Bisection, Bench]:
    """The runs with all optimizers and with none, and what there is to say already: guilty where a search is due."""
    criterion = bench.question.criterion
    try:
        plain = bench.outcome(Switches(bench.engine.levels[0]))
        bench = bench.held_against(plain)
        default = bench.outcome(Switches())
    except OutOfTime:
        return Bisection(label, Verdict.UNDECIDED, "the time was over before the search began", criterion), bench
    verdict, reason = _settled(default, plain, criterion)
    return Bisection(label, verdict, reason, criterion, default, plain, runs=2), bench


def _settled(default: Outcome, plain: Outcome, criterion: Criterion) -> tuple[Verdict, str]:
    """What follows from the two runs alone."""
    if default.answer is Answer.ALLOWED:
        bits = criterion is Criterion.BITS
        return Verdict.RIGHT, "no optimizer changes a bit" if bits else "every output is one that is allowed"
    if plain.answer is Answer.FAILED:
        return Verdict.PLAIN, f"without optimizers there are no outputs: {plain.failure}"
    if default.answer is Answer.UNDECIDED:
        return Verdict.UNDECIDED, "not every output has a bound that is known"
    if plain.answer is Answer.OUTSIDE:
        return Verdict.PLAIN, "the outputs without optimizers are not allowed either"
    return Verdict.GUILTY, ""


def _by_parts(
    engine: Optimizing, whole: Bisection, source: Source, feeds: Values, until: float, tell: Tell
) -> Bisection:
    """The first part that an optimizer changes and that shows something; else the whole, and what was asked."""
    parts = changed_parts(Case("the whole", in_memory(source), feeds), list(_steps(engine, source)))
    open_ = []
    for at, part in enumerate(parts):
        tell(f"part {at + 1} of {len(parts)}")
        asked = question(part.source, part.feeds, whole.criterion)
        if time.monotonic() > until or isinstance(asked, Failure):
            open_.append(part.name)
            continue
        start, _ = _begun(Bench(engine, asked, until, tell, apart=False), part.name)
        if start.verdict is Verdict.GUILTY:
            start = _bisected(engine, part.source, part.name, part.feeds, whole.criterion, until, tell)
        if start.verdict is Verdict.GUILTY:
            return replace(start, label=whole.label, part=part.name, whole=whole)
        open_ += [part.name] if start.verdict is not Verdict.RIGHT else []
    if not parts:
        return whole
    asked_alone = f"{whole.reason}; of {len(parts)} part{'s' * (len(parts) > 1)} that optimizers change"
    told = f"{len(open_)} are not settled alone: {few(open_, SHOWN)}" if open_ else "each is right alone too"
    return replace(whole, reason=f"{asked_alone}, {told}")


def _steps(engine: Optimizing, source: Source) -> Iterator[tuple[str, ...]]:
    """The tensors of the nodes that each optimizer changes, one after the other, those before it being on."""
    first = engine.optimized(source, Switches())
    if isinstance(first, Failure):
        return
    every = frozenset(it.name for it in first.passes)
    chosen = [it.name for it in first.passes if it.changed]
    before: bytes | None = None
    for count in range(len(chosen) + 1):
        done = engine.optimized(source, Switches(off=every - frozenset(chosen[:count])))
        after = None if isinstance(done, Failure) else done.content
        if before is not None and after is not None:
            yield change(before, after).tensors
        before = after


class _Search:
    """A search on a result that is wrong, and is not without optimizers."""

    def __init__(self, bench: Bench, start: Bisection) -> None:
        if start.default is None or start.plain is None:
            raise InternalError("a search begins with the results with and without optimizers")
        self.bench, self.start = bench, start
        self.wrong, self.right = start.default.signature, start.plain.signature
        self.narrowed: tuple[str, ...] = ()
        self.ran: dict[frozenset[str], Optimized] = {}
        self.parts: dict[str, tuple[str, ...]] = {}

    def done(self, until: float) -> Bisection:
        """The sets that are guilty, what to switch off, and the case made small; all there is at an interrupt."""
        guilty: list[Guilty] = []
        level, remedy, small, stopped = "", None, None, None
        try:
            level = self._level()
            guilty.extend(self._guilty())
            remedy = self._remedy([name for it in guilty for name in it.names])
            small = self._smallest(guilty[0], until) if guilty else None
        except OutOfTime:
            small = self._smallest(guilty[0], until) if guilty else None
        except KeyboardInterrupt as stop:
            stopped = stop
        verdict, reason = self._verdict(guilty)
        return replace(
            self.start,
            verdict=verdict,
            reason=reason,
            level=level,
            guilty=tuple(guilty),
            remedy=remedy,
            smallest=small,
            narrowed=() if guilty else self.narrowed,
            runs=len(self.bench.known),
            stopped=stopped,
        )

    def _verdict(self, guilty: Sequence[Guilty]) -> tuple[Verdict, str]:
        if guilty:
            return Verdict.GUILTY, " and, independent of it, ".join(" with ".join(it.names) for it in guilty)
        if self.narrowed:
            return Verdict.UNDECIDED, f"the search ended with {len(self.narrowed)} names to be told apart"
        return Verdict.UNDECIDED, "the result is the same with all optimizers off that have a name"

    def _happens(self, switches: Switches) -> bool:
        return self.bench.outcome(switches).signature == self.wrong

    def _level(self) -> str:
        """The lowest level at which it happens."""
        levels = self.bench.engine.levels
        return next((it for it in levels[1:-1] if self._happens(Switches(it))), levels[-1])

    # ---- Guilty optimizers ------------------------------------------------------------------------

    def _guilty(self) -> Iterator[Guilty]:
        """Sets that are wrong by themselves, each found with those before switched off."""
        off: frozenset[str] = frozenset()
        for _ in range(MOST):
            if off and not self._happens(Switches(off=off)):
                return
            names = self._names(off)
            if not names:
                return
            changes = tuple(self._changes(names))
            rules = (refuting(names, change.operators) for whose, change in changes if whose == names)
            yield Guilty(names, changes, next(rules, ()))
            off |= frozenset(names)

    def _names(self, off: frozenset[str]) -> tuple[str, ...]:
        """One set, of optimizers as small as can be switched off."""
        ran, every = self._passes(off)
        found = self._among([it for it in ran if it not in off], every | off)
        parts = tuple(dict.fromkeys(part for name in found for part in self._parts(name)))
        if not parts:
            return found
        split = {name for name in found if self._parts(name)}
        rest = [name for name in found if name not in split]
        finer = (every - split) | off | frozenset(parts)
        for chosen in ([it for it in parts if LIKELY.search(it)], parts):
            candidates = dict.fromkeys(it for it in (*chosen, *rest) if it not in off)
            if self._happens(Switches(off=finer - frozenset(candidates))):
                return self._among(list(candidates), finer) or found
        return found

    def _among(self, candidates: Sequence[str], every: frozenset[str]) -> tuple[str, ...]:
        """The few of the candidates that are needed with everything else off; empty where all of them do not do."""

        def happens(names: frozenset[str]) -> bool:
            holds = self._happens(Switches(off=every - names))
            if holds and (not self.narrowed or len(names) < len(self.narrowed)):
                self.narrowed = tuple(sorted(names))
            return holds

        likely = [it for it in sorted(every) if LIKELY.search(it)]
        for chosen in (candidates, likely, sorted(every)):
            if happens(frozenset(chosen)):
                return needed(chosen, happens)
        return ()

    def _passes(self, off: frozenset[str]) -> tuple[list[str], frozenset[str]]:
        """The optimizers that change the model with some off, and all that there are: also those behind one at which
        everything ends, which are seen once it is off. Where a process dies and tells nothing, all names that there may
        be."""
        first = self._optimized(off)
        every = frozenset(it.name for it in first.passes) or frozenset(self._parts(""))
        more = every
        while more:
            seen = frozenset(it.name for it in self._optimized(off | every).passes)
            more = seen - every
            every |= seen
        return [it.name for it in first.passes if it.changed], every

    def _optimized(self, off: frozenset[str]) -> Optimized:
        if off not in self.ran:
            done = self.bench.engine.optimized(self.bench.question.source, Switches(off=off))
            self.ran[off] = Optimized(None, (), done) if isinstance(done, Failure) else done
        return self.ran[off]

    def _parts(self, name: str) -> tuple[str, ...]:
        if name not in self.parts:
            self.parts[name] = self.bench.engine.parts(name)
        return self.parts[name]

    def _remedy(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """The fewest of the names without which the result is as without optimizers."""

        def right(off: frozenset[str]) -> bool:
            return self.bench.outcome(Switches(off=off)).signature == self.right

        chosen = tuple(dict.fromkeys(names))
        return least(chosen, right) if chosen and right(frozenset(chosen)) else None

    # ---- What they do -----------------------------------------------------------------------------

    def _changes(self, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Change]]:
        every = self._everything(names)
        before = self._optimized(every).content
        if before is None:
            return
        for chosen in (names, *((it,) for it in names if len(names) > 1)):
            after = self._optimized(every - frozenset(chosen)).content
            if after is not None:
                yield chosen, change(before, after)
                if chosen == names:
                    return

    def _everything(self, names: tuple[str, ...]) -> frozenset[str]:
        """All names with which an optimizer can be switched off, where these are the ones in question."""
        _, every = self._passes(frozenset())
        wholes = [it for it in every if set(names) & set(self._parts(it))]
        parts = frozenset(part for it in wholes for part in self._parts(it))
        return (every - frozenset(wholes)) | parts if wholes else every

    def _smallest(self, guilty: Guilty, until: float) -> Smallest | None:
        every = self._everything(guilty.names)
        touched = [name for _, it in guilty.changes for name in it.tensors]
        only = Switches(off=every - frozenset(guilty.names))
        return smallest(self.bench, only, Switches(off=every), self.wrong, touched, until)
