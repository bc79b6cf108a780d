"""Edited timelines: every question answers from the timeline it is asked on, and names the edit where one is met."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from debugger_models import answer, nested, session, text
from random_models import random_model
from sampling import seeds
from sonnx.semantics.debugger.display.answers import Note, Refusal, Rows, cell_text
from sonnx.semantics.debugger.queries.sources import Sources, origin
from sonnx.semantics.debugger.session.session import Session
from sonnx.semantics.debugger.timeline.names import Instance
from sonnx.semantics.machine.state import tensor_path, value_of
from sonnx.semantics.resources.persistent import items


def edited(*commands: str) -> Session:
    """NESTED after commands: step 1 has written a = x + x, step 3 b = 2 * a, step 5 d = 2 * b."""
    return answer(nested(), *commands)[0]


def row(found: Session, line: str, tensor: str) -> tuple[str, ...]:
    """The row of `origin` about a tensor whose kind is not input or stored."""
    got = answer(found, line)[1]
    assert isinstance(got, Rows)
    return next(tuple(map(cell_text, it)) for it in got.rows if it[1] == tensor)


# ---- Each question names the edit -------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("last-write a", '/"a" was set at step 1 on timeline 1: seek 1 is right after'),
        ("last-write a[0]", '/"a"[0] was set at step 1 on timeline 1: seek 1 is right after'),
        ("last-write a[1]", '/"a" was written by /0:Add (line 9): seek 1 is right after, seek 0 right before'),
        ("explain a[0]", '/"a"[0] was set at step 1 on timeline 1'),
    ],
)
def test_what_was_edited_was_not_written_and_what_was_not_edited_was(line: str, said: str) -> None:
    found = edited("seek 1", "set a[0] = nan")
    assert text(found, line).startswith(said)


def test_the_way_of_a_nan_ends_at_the_edit_that_made_it() -> None:
    found = edited("seek 1", "set a[0] = nan", "seek end")
    got = answer(found, "why-nan y[0]")[1]
    assert isinstance(got, Rows)
    assert tuple(map(cell_text, got.rows[-1])) == ("Edited", '/"a"[0]', "nan", "1", "", "set at step 1 on timeline 1")
    assert all(it[0] != "Generated" for it in got.rows)


def test_the_origin_of_an_element_ends_at_the_edit_and_names_it() -> None:
    found = edited("seek 1", "set a[0] = 7", "seek end")
    assert row(found, "origin d[0]", '/"a"') == ("data", '/"a"', "edited", "1", "[0]")
    assert '/"a": set at step 1 on timeline 1' in text(found, "origin d[0]")
    assert row(found, "origin d[1]", '/"x"') == ("data", '/"x"', "input", "1", "[1]")


def test_an_edited_input_is_told_from_one_that_was_given() -> None:
    found = edited("set x[0] = 5", "seek end")
    assert text(found, "last-write x").splitlines()[0] == '/"x" was set at step 0 on timeline 1: seek 0 is right after'
    got = answer(found, "origin a[0]")[1]
    assert isinstance(got, Rows) and [it[2] for it in got.rows] == ["edited"]
    assert row(found, "origin a[1]", '/"x"')[2] == "input"
    assert text(found, "explain x[0]") == '/"x"[0] was set at step 0 on timeline 1'


def test_a_byte_of_an_edited_tensor_was_set() -> None:
    found = edited("seek 1", "set a[0] = 7")
    where = next(it for it in text(found, "info tensors a").splitlines() if it.startswith('/"a"')).split()
    shown = text(found, f"last-write {next(it for it in where if it.startswith('0x'))}")
    assert shown.endswith('is byte 0 of 8 of /"a", set at step 1 on timeline 1')


# ---- Of the timeline at hand ------------------------------------------------------------------


def test_an_edit_after_a_read_is_not_what_was_read() -> None:
    found = edited("seek end", "set a[0] = nan")
    assert row(found, "origin d[0]", '/"x"')[2] == "input"
    assert "nan" not in text(found, "explain b[0]") and "1.0 + 1.0" not in text(found, "explain a[0]")
    assert "is a number" in text(found, "why-nan d[0]")
    assert row(found, "origin a[0]", '/"a"')[2] == "edited"


def test_the_last_of_several_edits_is_named_and_earlier_reads_see_the_earlier_one() -> None:
    found = edited("seek 1", "set a[0] = 7", "seek 3", "set a[0] = 9", "set a[1] = 8")
    assert "timeline 2" in text(found, "last-write a[0]") and "timeline 3" in text(found, "last-write a[1]")
    assert "timeline 1" in text(found, "origin b[0]") and "timeline 2" not in text(found, "origin b[0]")
    assert text(found, "print b") == '/"b": float[2] = 14.0 -8.0'


def test_a_timeline_that_begins_before_an_edit_does_not_have_it() -> None:
    found = edited("seek 3", "set b[0] = 7", "seek 1", "set a[0] = 9")
    assert found.history.label == '/"a"[0] set to 9.0 at 1'
    assert "timeline 1" not in text(found, "seek 3", "last-write b")
    assert text(found, "seek 3", "print b") == '/"b": float[2] = 18.0 -8.0'
    chosen = answer(edited("seek 3", "set b[0] = 7", "start"), "timeline 0")[0]
    assert chosen.history.label == ""


def test_an_edit_in_a_run_of_a_body_is_of_that_run_alone_and_outlives_it() -> None:
    found = answer(nested(), "watch s2 if $run == 1", "continue", "set s2[0] = 100")[0]
    path = next(it.edit.path for it in found.history.edits if it.edit is not None)
    assert "@1" in path
    ended = answer(found, "seek end")[0]
    assert "timeline 1" in text(ended, f"last-write `{path}`[0]")
    assert "timeline" not in text(ended, f"last-write `{path.replace('@1', '@0')}`[0]")
    assert text(ended, f"print `{path}`[0]").endswith("100.0")
    assert "timeline 1" in text(ended, "origin y[0]")
    refused = answer(ended, f"set `{path}`[0] = 3")[1]
    assert isinstance(refused, Refusal) and "of a run that is over" in refused.message


# ---- Whole tensors and slices -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("set a = 3", "3.0 3.0"),
        ("set a[:] = x", "1.0 -2.0"),
        ("set a = 2 * a + 1", "5.0 -7.0"),
        ("set a[1:] = 6", "2.0 6.0"),
        ("set a[::-1] = a", "-4.0 2.0"),
    ],
)
def test_whole_tensors_and_slices_are_set(line: str, value: str) -> None:
    assert text(edited("seek 1", line), "print a") == f'/"a": float[2] = {value}'


def test_a_tensor_is_set_from_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([4.5, 5.5]))
    found = edited("seek 1", f"set a from {tmp_path}/a.npy")
    assert text(found, "print a") == '/"a": float[2] = 4.5 5.5'
    saved = answer(found, f"save {tmp_path}/s")[0]
    assert text(answer(saved, f"load {tmp_path}/s")[0], "print a") == '/"a": float[2] = 4.5 5.5'
    np.save(tmp_path / "a.npy", np.array([4.5, 5.0]))
    got = answer(saved, f"load {tmp_path}/s")[1]
    assert isinstance(got, Refusal) and "not the file that was read then" in got.message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("set a = x[0:0]", "has the shape [0]"),
        ("set a[0:0] = 1", "selects no element"),
        ("set a from nothing.npy", "No such file"),
        ("set a", "say set"),
        ("set c = 2", "true or false"),
        ("set n = nan", "is no int64"),
        ("set a[5] = 1", "there is no position 5"),
    ],
)
def test_what_does_not_fit_is_refused(line: str, said: str) -> None:
    got = answer(nested(), "seek 1", line)[1]
    assert isinstance(got, Refusal) and said in got.message


def test_bytes_that_are_poked_are_of_the_elements_that_they_are_in() -> None:
    found = edited("seek 1", "poke a 3 0000")
    assert "set at step 1" in text(found, "last-write a[0]") and "set at step 1" in text(found, "last-write a[1]")
    assert isinstance(answer(edited("seek 1", "poke a 4 00"), "last-write a[0]")[1], Note)
    assert "was set" not in text(edited("seek 1", "poke a 4 00"), "last-write a[0]")


# ---- What is named is what matters ----------------------------------------------------------------


@pytest.mark.parametrize("tried", seeds(200, 5))
def test_an_element_whose_origin_names_no_edit_does_not_depend_on_it(tried: range) -> None:
    named = 0
    for seed in tried:
        named += edits_named(seed)
    assert named


def every(found: Session) -> list[int]:
    """The tensors that have a value at the end."""
    return [t for t, place in items(found.state.frame.table) if not place.freed and place.type.kind == "tensor"]


def edits_named(seed: int) -> int:
    """How many elements of outputs name an edit in a random model; those that do not are the same without it, where the
    edit changes no size: an origin follows elements."""
    proto, inputs = random_model(seed)
    rng = random.Random(seed)
    found = session(proto, inputs)
    last = found.history.finish().index
    index = rng.randrange(last)
    state = found.history.at(index).state
    floats = [
        t for t, place in items(state.frame.table)
        if not place.freed and isinstance(it := value_of(state, t), np.ndarray) and it.dtype == np.float32 and it.size
    ]  # fmt: skip
    if not floats:
        return 0
    t = rng.choice(floats)
    shape = value_of(state, t).shape  # type: ignore[union-attr]
    at = [rng.randrange(size) for size in shape]
    changed = answer(found, f"seek {index}", f"set `{tensor_path(state, t)}`{at if at else ''} = 1234.5", "seek end")[0]
    if changed.history.stuck is not None:
        return 0
    named = 0
    before = answer(found, "seek end")[0]
    if any(np.shape(value_of(before.state, t)) != np.shape(value_of(changed.state, t)) for t in every(before)):
        return 0
    for output in found.model.graphs[0].outputs:
        there, here = value_of(before.state, output), value_of(changed.state, output)
        if not isinstance(there, np.ndarray) or not isinstance(here, np.ndarray) or there.shape != here.shape:
            continue
        for place in rng.sample(list(np.ndindex(here.shape)), min(4, here.size)):
            sources = Sources(changed.history, changed.index)
            instance = Instance(output, tensor_path(changed.state, output))
            got = origin(sources, sources.element(instance, place, changed.index))
            tells = any(it.edited is not None for it in (*got.data, *got.control))
            same = there[place].tobytes() == here[place].tobytes()
            assert tells or same or got.cut, (seed, instance.path, place)
            named += tells
    return named
