"""The persistent map is a map: every version keeps its entries, in order, and changes cost O(log n)."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled
from sonnx.semantics.resources.persistent import PersistentMap, get, items, neighbours, persistent_map, put, remove

WALKS = pytest.mark.parametrize("seed", sampled(range(30), 10))


def walk(seed: int) -> Iterator[tuple[PersistentMap[int, int], dict[int, int]]]:
    """Versions of a map that grows and then shrinks to nothing, each with the entries that it must have."""
    random = Random(seed)
    keys = range(random.choice((10, 60, 400, 3000)))
    m: PersistentMap[int, int] = PersistentMap()
    entries: dict[int, int] = {}
    order = random.choice((sorted, list, lambda found: sorted(found, reverse=True)))
    for adds in (True, False):
        for key in order(random.sample(keys, len(keys))):
            if (random.random() < 0.9) == adds:
                value = random.randrange(5)
                m, entries[key] = put(m, key, value), value
            elif key in entries:
                del entries[key]
                m = remove(m, key)
            yield m, entries
    for key in order(random.sample(sorted(entries), len(entries))):
        del entries[key]
        m = remove(m, key)
        yield m, entries


def checked_nodes(node: Any, height: int) -> list[int]:
    """The keys under a node whose form is checked on the way."""
    keys, entries = node
    assert len(keys) == len(entries) <= 32
    assert list(keys) == sorted(set(keys))
    if height == 0:
        return list(keys)
    below = [checked_nodes(child, height - 1) for child in entries]
    assert all(below)
    assert [part[0] for part in below] == list(keys)
    return [key for part in below for key in part]


def nodes(m: PersistentMap[int, int]) -> dict[int, tuple[object, object]]:
    found: dict[int, tuple[object, object]] = {}
    stack = [(m.root, m.height), (m.tail, 0)]
    while stack:
        node, height = stack.pop()
        found[id(node)] = node
        stack.extend((child, height - 1) for child in node[1] if height)
    return found


@WALKS
def test_every_version_keeps_the_entries_of_its_time(seed: int) -> None:
    versions = [(m, dict(entries)) for i, (m, entries) in enumerate(walk(seed)) if i % 37 == 0]
    for m, entries in versions:
        assert list(items(m)) == sorted(entries.items())
        assert (len(m), list(m)) == (len(entries), sorted(entries))
        for key in range(-1, 70):
            assert get(m, key) == entries.get(key)
            assert (key in m) == (key in entries)


@WALKS
def test_the_tree_stays_well_formed_and_shrinks_with_its_entries(seed: int) -> None:
    for i, (m, entries) in enumerate(walk(seed)):
        if i % 13 == 0 or not entries:
            keys = [*checked_nodes(m.root, m.height), *checked_nodes(m.tail, 0)]
            assert keys == sorted(keys)
            assert len(keys) == len(m) == len(entries)
            assert m.height == 0 or len(m.root[0]) > 1
    assert m == PersistentMap()


@WALKS
def test_neighbours_and_items_from_a_key_are_those_of_the_sorted_keys(seed: int) -> None:
    for i, (m, entries) in enumerate(walk(seed)):
        if i % 97:
            continue
        keys = sorted(entries)
        for key in (-1, 0, 7, 59, 60, 61, 333, 1500, 2999, 3000):
            at = bisect_right(keys, key)
            below = (keys[at - 1], entries[keys[at - 1]]) if at else None
            assert neighbours(m, key) == (below, keys[at] if at < len(keys) else None)
            assert [k for k, _ in items(m, key)] == keys[bisect_left(keys, key) :]


@given(st.lists(st.tuples(st.text(max_size=3), st.integers())))
def test_the_order_of_making_does_not_show(entries: list[tuple[str, int]]) -> None:
    unique = list(dict(entries).items())
    one: PersistentMap[str, int] = PersistentMap()
    for key, value in unique:
        one = put(one, key, value)
    other: PersistentMap[str, int] = persistent_map(reversed(unique))
    assert one == other
    assert hash(one) == hash(other)
    assert repr(list(items(one))) == repr(list(items(other)))


def test_maps_with_other_entries_are_different() -> None:
    m = persistent_map([(1, "a"), (2, "b")])
    assert m != put(m, 1, "c")
    assert m != put(m, 3, "c")
    assert m != remove(m, 2)
    assert m != {1: "a", 2: "b"}


def test_a_missing_key_is_reported() -> None:
    m = persistent_map([(1, "a")])
    assert m[1] == "a"
    for missing in (0, 2):
        with pytest.raises(KeyError):
            m[missing]
        with pytest.raises(KeyError):
            remove(m, missing)


def test_keys_in_ascending_order_make_a_leaf_each_and_a_path_for_one_in_many() -> None:
    m: PersistentMap[int, int] = PersistentMap()
    made = []
    for k in range(300):
        before, m = nodes(m), put(m, k, k)
        made.append(len(nodes(m).keys() - before.keys()))
    assert sum(made) < 1.2 * len(made)


def test_putting_makes_a_path_of_nodes_and_shares_the_others() -> None:
    m = persistent_map((k, k) for k in range(100_000))
    for key in (0, 50_001, 99_999, 100_000):
        before, after = nodes(m), nodes(put(m, key, -1))
        assert len(set(after) - set(before)) <= 4
    assert m.height == 3


@pytest.mark.parametrize("step", [1, -1, 7919], ids=["ascending", "descending", "scattered"])
def test_all_versions_of_a_growing_map_take_a_kilobyte_each(step: int) -> None:
    versions: list[PersistentMap[int, int]] = [PersistentMap()]
    for i in range(2000):
        versions.append(put(versions[-1], i * step % 10007, 0))
    seen: dict[int, tuple[object, object]] = {}
    for m in versions[::-1]:
        seen.update(nodes(m))
    size = sum(sys.getsizeof(node) + sys.getsizeof(node[0]) + sys.getsizeof(node[1]) for node in seen.values())
    assert size / 2000 < 1400
