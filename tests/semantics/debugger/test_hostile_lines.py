"""Command lines that nobody means: none raises, each has an answer that can be shown, and edits stay told."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from debugger_models import answer, nested
from sampling import seeds
from sonnx.semantics.debugger.commands.scripting import following, separate
from sonnx.semantics.debugger.commands.table import COMMANDS, completed, execute
from sonnx.semantics.debugger.display.answers import Refusal
from sonnx.semantics.debugger.display.rendering import lines, to_json

WORDS = (
    "x", "b[0]", "s[0]", "t", "h[1,0]", "y", "c", "n", '`/4:Loop.body@1/"s"`', '`/4:Loop.body@9/"s"`', "/4:Loop.body@1",
    "return", "return /4:Loop.body", "function:local::Twice", "op:*", "nan", "1", "2", "-1", "0x10", "9" * 21, "end",
    "[", "(", ")", "}", "=", ":", "...", "from", "a.npy", "b.npy", "if", "hit", "says", "at", "everywhere", "-n", "-d",
    "$run", "$bogus", "any(", "isnan(x)", "'t'", '"', "'", "`", ";", "\x1b[2J", "\u202e", "\x00", "x = 3", "s[0] = inf",
    "a from a.npy", "00ff", "x/0", "one", "two", "@0x40:4", ">=2", '"msg {x[0]} {"', '"run {$run}"', "/x", "/q",
)  # fmt: skip
MOVES = (
    "step", "next", "continue", "seek end", "seek 12", "reverse-continue", "stepi", "set s[0] = nan", "set x[0] = nan",
    "set a = 3", "finish", "timeline 0", "timeline 1", "save one", "load one", "save two", "load two", "display s",
    'commands 1 "print x"', "why-nan y[0]", "origin h[1, 1]", "explain y[0]", "last-write s", "poke a 1 ff", "delete",
)  # fmt: skip


@pytest.mark.parametrize("tried", seeds(1000, 6))
def test_no_command_line_raises(tried: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in tried:
        for file in tmp_path.iterdir():
            file.unlink()
        np.save("a.npy", np.array([1.5, 2.5]))
        (tmp_path / "b.npy").write_bytes(b"\x93NUMPY\x01\x00")
        typed(random.Random(seed))


def typed(rng: random.Random) -> None:
    """A session of 25 lines."""
    found = nested()
    names = [it.name for it in COMMANDS if it.name != "quit"]
    for _ in range(25):
        words = rng.choices(WORDS, k=rng.randrange(4))
        line = rng.choice(MOVES) if rng.random() < 0.35 else " ".join((rng.choice(names), *words))
        completed(found, line)
        for part in separate(found, line):
            outcome = execute(found, part)
            found = outcome.session
            assert all(it.isprintable() for it in lines(outcome.answer, 60)), line
            assert to_json(outcome.answer).isascii() and following(found, outcome.answer) is not None
        assert bool(found.history.label) == bool(found.history.edits)


def test_what_no_file_and_no_number_can_be_is_refused() -> None:
    for line in ("load \x00", "first-diff a\x00b", "set a from \x00", "print 18446744073709551616"):
        assert isinstance(answer(nested(), line)[1], Refusal), line
