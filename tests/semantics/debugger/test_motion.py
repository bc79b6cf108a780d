"""Moving: over bodies and calls, into and out of them, in both directions, and to what is to be met."""

from __future__ import annotations

from dataclasses import replace

from debugger_models import answer, nested, stopped, text


def lines(command: str, count: int, *first: str) -> list[int]:
    """The lines at which a command stands still, one time after the other."""
    found = nested()
    for line in first:
        found, _ = stopped(found, line)
    seen = []
    for _ in range(count):
        found, got = stopped(found, command)
        seen.append(got.where.line)
    return seen


def test_next_takes_a_call_a_branch_and_a_loop_as_one() -> None:
    assert lines("next", 5) == [11, 14, 16, 24, 35]


def test_reverse_next_comes_by_the_same_lines() -> None:
    assert lines("reverse-next", 6, "seek end") == [24, 16, 14, 11, 9, 9]


def test_step_goes_into_calls_bodies_and_runs() -> None:
    assert lines("step", 15) == [11, 12, 14, 15, 16, 21, 22, 23, 24, 29, 30, 32, 33, 34, 29]


def test_reverse_step_comes_by_the_same_lines() -> None:
    assert lines("reverse-step", 15, "seek 15") == [34, 33, 32, 30, 29, 24, 23, 22, 21, 16, 15, 14, 12, 11, 9]


def test_next_inside_of_a_body_goes_over_the_call_in_it_and_on_to_the_next_run() -> None:
    assert lines("next", 5, "seek 10") == [30, 32, 34, 29, 30]


def test_finish_leaves_a_call_or_a_body_with_all_its_runs() -> None:
    assert lines("finish", 2, "seek 2") == [14, 35]
    assert lines("finish", 1, "seek 12") == [35]
    assert lines("finish", 1, "seek 13") == [34]


def test_reverse_finish_goes_back_to_where_a_call_or_a_body_began() -> None:
    assert lines("reverse-finish", 1, "seek 2") == [11]
    assert lines("reverse-finish", 1, "seek 23") == [32]
    assert lines("reverse-finish", 1, "seek 21") == [24]


def test_until_leaves_the_runs_of_a_body_behind() -> None:
    assert lines("until", 1, "seek 14") == [35]
    assert lines("until 34", 2, "seek 9") == [34, 34]
    assert lines("reverse-until 9", 1, "seek 14") == [9]


def test_seek_to_a_node_with_a_body_goes_to_where_it_is_about_to_fire() -> None:
    assert lines("seek op:If", 1) == lines("seek op:If", 1, "seek end") == [16]
    assert lines("seek op:Loop", 1, "seek end") == [24]


def test_phases_are_select_read_apply_write_advance() -> None:
    found = nested()
    seen = []
    for _ in range(5):
        found, got = stopped(found, "stepi")
        seen.append((got.where.index, got.where.phase))
    assert seen == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 0)]
    assert "written by Step/fire" in text(found, "reverse-stepi")
    assert stopped(found, "reverse-stepi", "reverse-step")[1].where.index == 0


def test_positions_can_be_named_in_many_ways() -> None:
    found = nested()
    for command, index in (
        ("seek 7", 7),
        ("seek +2", 2),
        ("seek 40%", 10),
        ("seek end", 25),
        ("seek op:If", 5),
        ("seek 99", 25),
    ):
        assert stopped(found, command)[1].where.index == index
    found, _ = stopped(found, "seek 7")
    found, _ = answer(found, "bookmark here", "seek 20")
    assert stopped(found, "seek here")[0].index == 7


def test_where_shows_graphs_runs_and_calls_and_up_looks_at_the_names_around() -> None:
    found = nested()
    shown = text(found, "seek 18", "where").splitlines()
    assert [row.split()[:2] for row in shown[2:]] == [
        ["0*", "/4:Loop.body@1/2:local::Twice"],
        ["1", "/4:Loop.body@1"],
        ["2", "/"],
    ]
    assert text(found, "seek 18", "print t") == '/4:Loop.body@1/2:local::Twice!"t": float[2] = -12.0 -40.0'
    assert text(found, "seek 18", "up", "up", "print a") == '/"a": float[2] = 2.0 -4.0'
    assert text(found, "seek 18", "down").startswith("refused: this is the innermost frame")
    assert "call /2:local::Twice begins" in text(found, "seek 3")


def test_the_search_stops_when_someone_waits() -> None:
    found = replace(nested(), interrupted=lambda: True)
    assert stopped(found, "continue")[1].reason == "pause"
    assert stopped(found, "continue")[0].index == 1
