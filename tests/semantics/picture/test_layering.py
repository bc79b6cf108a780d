"""The layout of a graph: edges lead down, boxes of a row stand apart, the same graph is laid out alike."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest
from sonnx.semantics.picture.layering import BEND, GAP, READERS, SPAN, Edge, Layout, layered, separated


def drawn(count: int, seed: int, reach: float = 6.0) -> tuple[list[int], list[Edge]]:
    rng = random.Random(seed)
    edges = {
        (max(b - 1 - int(rng.expovariate(1 / reach)), 0), b) for b in range(1, count) for _ in range(rng.choice((1, 2)))
    }
    return [rng.randrange(60, 230) for _ in range(count)], sorted(edges)


def overlaps(widths: list[int], edges: list[Edge], layout: Layout) -> list[tuple[float, float]]:
    """Boxes and bends of one row that come nearer to each other than the gap, a pixel for rounding left out."""
    rows: dict[int, list[tuple[float, float]]] = {}
    for row, middle, width in zip(layout.row, layout.middle, widths, strict=True):
        rows.setdefault(row, []).append((middle - width / 2, middle + width / 2))
    for (a, _), bends in zip(edges, layout.bends, strict=True):
        for number, x in enumerate(bends):
            rows.setdefault(layout.row[a] + 1 + number, []).append((x - BEND / 2, x + BEND / 2))
    wrong = []
    for row in rows.values():
        row.sort()
        wrong += [(p[1], q[0]) for p, q in pairwise(row) if q[0] - p[1] < GAP - 1.01]
    return wrong


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("reach", [1.0, 6.0, 60.0])
def test_edges_lead_down_and_nothing_overlaps(seed: int, reach: float) -> None:
    widths, edges = drawn(300, seed, reach)
    layout = layered(widths, edges)
    assert all(layout.row[a] < layout.row[b] for a, b in edges)
    assert not overlaps(widths, edges, layout)
    assert min(x - w / 2 for x, w in zip(layout.middle, widths, strict=True)) >= -0.5
    for (a, b), bends in zip(edges, layout.bends, strict=True):
        between = layout.row[b] - layout.row[a] - 1
        assert len(bends) == between or (not bends and between >= 1)
    assert layered(widths, edges) == layout


def test_every_edge_across_a_few_rows_is_led_around_boxes() -> None:
    edges = [(it, it + 1) for it in range(20)] + [(2, 2 + SPAN), (3, 3 + SPAN + 1)]
    bends = dict(zip(edges, layered([100] * 21, edges).bends, strict=True))
    assert len(bends[2, 2 + SPAN]) == SPAN - 1
    assert bends[3, 3 + SPAN + 1] == ()
    wide = [(0, it) for it in range(1, READERS + 2)] + [(it, it + 1) for it in range(1, READERS + 1)]
    assert not any(layered([100] * (READERS + 2), wide).bends), (
        "the edges of a box that all read are shown by their ends"
    )


def test_a_cycle_is_drawn_with_one_edge_that_leads_back() -> None:
    edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 3)]
    layout = layered([100] * 4, edges)
    assert [(a, b) for a, b in edges if layout.row[b] <= layout.row[a]] == [(2, 0), (3, 3)]


def test_a_row_has_room_for_few_and_a_chain_is_straight() -> None:
    alone = layered([100] * 2500, [])
    assert max(map(alone.row.count, set(alone.row))) == 50
    chain = layered([100] * 500, [(it, it + 1) for it in range(499)])
    assert len(set(chain.middle)) == 1 and chain.row == tuple(range(500))


def test_what_only_feeds_a_chain_does_not_push_it_aside() -> None:
    fed = [(it, it + 1) for it in range(199)] + [(200 + it, it + 1) for it in range(199)]
    layout = layered([100] * 399, fed)
    assert max(layout.middle[:200]) - min(layout.middle[:200]) < 400
    assert all(layout.row[200 + it] == layout.row[it] for it in range(199))


def test_boxes_stand_as_near_to_where_they_want_to_as_they_can() -> None:
    assert separated([0, 0], [20, 20], [1, 1]) == [-(20 + GAP) / 2, (20 + GAP) / 2]
    assert separated([0, 500], [20, 20], [1, 1]) == [0, 500]
    near, far = separated([0, 0], [20, 20], [999, 1])
    assert abs(near) < 1 and round(far - near) == 20 + GAP


def test_ten_thousand_boxes_take_a_few_seconds_of_the_processor_at_most() -> None:
    widths, edges = drawn(10_000, 1, 30.0)
    start = time.process_time()
    layered(widths, edges)
    assert time.process_time() - start < 6
