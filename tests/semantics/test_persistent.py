"""The persistent map is a map: every version keeps its entries, in order, and changes cost O(log n)."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sonnx.semantics.persistent import PersistentMap, get, items, neighbours, persistent_map, put, remove

CHANGES = st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers()), max_size=400)


def checked_nodes(node: Any, height: int) -> list[int]:
    """The keys under a node whose form is checked on the way."""
    keys, entries = node
    assert len(keys) == len(entries) <= 16
    assert list(keys) == sorted(set(keys))
    if height == 0:
        return list(keys)
    below = [checked_nodes(child, height - 1) for child in entries]
    assert all(below)
    assert [part[0] for part in below] == list(keys)
    return [key for part in below for key in part]


def nodes(m: PersistentMap[int, int]) -> dict[int, object]:
    found: dict[int, object] = {}
    stack = [(m.root, m.height)]
    while stack:
        node, height = stack.pop()
        found[id(node)] = node
        stack.extend((child, height - 1) for child in node[1] if height)
    return found


@given(CHANGES)
def test_every_version_agrees_with_a_dict(changes: list[tuple[bool, int, int]]) -> None:
    m: PersistentMap[int, int] = PersistentMap()
    entries: dict[int, int] = {}
    versions = []
    for adds, key, value in changes:
        if adds or key not in entries:
            m, entries = put(m, key, value), entries | {key: value}
        else:
            m, entries = remove(m, key), {k: v for k, v in entries.items() if k != key}
        versions.append((m, entries))
    for m, entries in versions:
        assert list(items(m)) == sorted(entries.items())
        assert (len(m), list(m)) == (len(entries), sorted(entries))
        assert all(get(m, key) == entries.get(key) and (key in m) == (key in entries) for key in range(-1, 62))


@given(CHANGES)
def test_the_tree_stays_well_formed(changes: list[tuple[bool, int, int]]) -> None:
    m: PersistentMap[int, int] = PersistentMap()
    for adds, key, value in changes:
        m = put(m, key, value) if adds or key not in m else remove(m, key)
        assert len(checked_nodes(m.root, m.height)) == len(m)
        assert m.height == 0 or len(m.root[0]) > 1


@given(st.sets(st.integers(0, 300)), st.integers(-5, 305))
def test_neighbours_and_items_from_a_key_are_those_of_the_sorted_keys(keys: set[int], key: int) -> None:
    m = persistent_map((k, -k) for k in keys)
    below = max((k for k in keys if k <= key), default=None)
    above = min((k for k in keys if k > key), default=None)
    assert neighbours(m, key) == (None if below is None else (below, -below), above)
    assert [k for k, _ in items(m, key)] == sorted(k for k in keys if k >= key)


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


def test_putting_makes_a_path_of_nodes_and_shares_the_others() -> None:
    m = persistent_map((k, k) for k in range(100_000))
    for key in (0, 50_001, 99_999, 100_000):
        before, after = nodes(m), nodes(put(m, key, -1))
        assert len(set(after) - set(before)) <= 6
    assert m.height == 4


@pytest.mark.parametrize("step", [1, -1, 7919], ids=["ascending", "descending", "scattered"])
def test_all_versions_of_a_growing_map_take_a_kilobyte_each(step: int) -> None:
    versions: list[PersistentMap[int, int]] = [PersistentMap()]
    for i in range(5000):
        versions.append(put(versions[-1], i * step % 10007, 0))
    seen: dict[int, object] = {}
    for m in versions[::-1]:
        seen.update(nodes(m))
    size = sum(sys.getsizeof(node) + sum(map(sys.getsizeof, node)) for node in seen.values())  # type: ignore[call-overload]
    assert size / 5000 < 1400
