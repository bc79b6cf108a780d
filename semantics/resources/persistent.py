"""A persistent ordered map: a change makes a new map that shares with the old one all but a path of O(log n) nodes.

A B+ tree of tuples. Keys are ordered by `<`, so that the order of iteration depends on the keys alone. A node is
(keys, children), at height 0 (keys, values); keys[i] is the least key of children[i]. No node but the root is empty.
One more leaf, the tail, holds entries above all of the tree: where keys come in ascending order, most changes copy it
alone.
"""

# ruff: noqa: RUF005 - parts of tuples are joined by `+`, which takes half the time of unpacking them

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from . import quick

K = TypeVar("K")
V = TypeVar("V")

_WIDTH: Final = 32  # entries of a node: more make a step copy more, fewer make the path longer
_Entries = tuple[Any, ...]  # keys, values or nodes: the functions below give them their types
_Node = tuple[_Entries, _Entries]
_EMPTY: Final[_Node] = ((), ())


@quick
@dataclass(frozen=True, slots=True, eq=False)
class PersistentMap(Generic[K, V]):
    """A finite map; the empty one by default. height: the levels above the leaves. See `put` and `remove`."""

    root: _Node = _EMPTY
    height: int = 0
    size: int = 0
    tail: _Node = _EMPTY

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key: K) -> V:
        keys, values = _leaf(self, key)
        i = bisect_left(keys, key)
        if i < len(keys) and keys[i] == key:
            value: V = values[i]
            return value
        raise KeyError(key)

    def __contains__(self, key: K) -> bool:
        keys, _ = _leaf(self, key)
        i = bisect_left(keys, key)
        return bool(i < len(keys) and keys[i] == key)

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in items(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PersistentMap):
            return NotImplemented
        if self.root is other.root and self.tail is other.tail:
            return True
        return self.size == other.size and all(a == b for a, b in zip(items(self), items(other), strict=True))

    def __hash__(self) -> int:
        return hash(tuple(items(self)))


def persistent_map(entries: Iterable[tuple[K, V]] = ()) -> PersistentMap[K, V]:
    """The map of these entries; the last one counts where a key comes more than once."""
    pairs = dict(entries)
    keys = sorted(pairs)  # type: ignore[type-var]  # the caller's keys are ordered
    level: list[_Node] = [
        (tuple(part), tuple(pairs[key] for key in part)) for part in (keys[i : i + _WIDTH] for i in _starts(len(keys)))
    ]
    height = 0
    while len(level) > 1:
        parts = [level[i : i + _WIDTH] for i in _starts(len(level))]
        level = [(tuple(node[0][0] for node in part), tuple(part)) for part in parts]
        height += 1
    return PersistentMap(level[0] if level else _EMPTY, height, len(keys))


def get(m: PersistentMap[K, V], key: K) -> V | None:
    """The value at key, None when there is none."""
    keys, values = m.tail
    if not keys or key < keys[0]:  # as `_leaf`, without a call: every step asks several times
        keys, values = m.root
        for _ in range(m.height):
            i = bisect_right(keys, key)
            keys, values = values[i - 1 if i else 0]
    i = bisect_left(keys, key)
    if i < len(keys) and keys[i] == key:
        value: V = values[i]
        return value
    return None


def put(m: PersistentMap[K, V], key: K, value: V) -> PersistentMap[K, V]:
    """The map m with value at key."""
    tail = m.tail
    keys, values = tail
    if keys and not key < keys[0]:
        i = bisect_left(keys, key)
        if i < len(keys) and keys[i] == key:
            return PersistentMap(m.root, m.height, m.size, (keys, values[:i] + (value,) + values[i + 1 :]))
        if len(keys) < _WIDTH:
            tail = (keys[:i] + (key,) + keys[i:], values[:i] + (value,) + values[i:])
            return PersistentMap(m.root, m.height, m.size + 1, tail)
        m, tail = _with_tail(m), _EMPTY
    path, (keys, values) = _descend(m, key)
    i = bisect_left(keys, key)
    if tail is _EMPTY and i == len(keys) and all(at == len(beside) - 1 for beside, _, at in path):
        return PersistentMap(m.root, m.height, m.size + 1, ((key,), (value,)))
    more = i == len(keys) or keys[i] != key
    if more:
        keys = keys[:i] + (key,) + keys[i:]
        values = values[:i] + (value,) + values[i:]
    else:
        values = values[:i] + (value,) + values[i + 1 :]
    return _above(path, *_split(keys, values, i), m.height, m.size + more, tail)


def _with_tail(m: PersistentMap[K, V]) -> PersistentMap[K, V]:
    """The same map, the tail a leaf of the tree."""
    path, last = _descend(m, m.tail[0][0])
    beside = m.tail if last[0] else None
    return _above(path, last if last[0] else m.tail, beside, m.height, m.size, _EMPTY)


def _above(
    path: list[tuple[_Entries, _Entries, int]], node: _Node, beside: _Node | None, height: int, size: int, tail: _Node
) -> PersistentMap[Any, Any]:
    """The map with this leaf, or these two, at the end of a path."""
    for keys, children, i in reversed(path):
        if i == 0:
            keys = node[0][:1] + keys[1:]
        if beside is None:
            node = (keys, children[:i] + (node,) + children[i + 1 :])
        else:
            keys = keys[: i + 1] + beside[0][:1] + keys[i + 1 :]
            node, beside = _split(keys, children[:i] + (node, beside) + children[i + 1 :], i + 1)
    if beside is None:
        return PersistentMap(node, height, size, tail)
    return PersistentMap((node[0][:1] + beside[0][:1], (node, beside)), height + 1, size, tail)


def remove(m: PersistentMap[K, V], key: K) -> PersistentMap[K, V]:
    """The map m without key. Raises KeyError when m does not have it."""
    keys, values = m.tail
    tailed = keys and not key < keys[0]
    path: list[tuple[_Entries, _Entries, int]] = []
    if not tailed:
        path, (keys, values) = _descend(m, key)
    i = bisect_left(keys, key)
    if i == len(keys) or keys[i] != key:
        raise KeyError(key)
    node: _Node = (_without(keys, i), _without(values, i))
    if tailed:
        return PersistentMap(m.root, m.height, m.size - 1, node if node[0] else _EMPTY)
    for keys, children, i in reversed(path):
        keys = (*keys[:i], node[0][0] if node[0] else None, *keys[i + 1 :])
        children = (*children[:i], node, *children[i + 1 :])
        node = _mended(keys, children, i) if len(node[0]) < _WIDTH // 4 else (keys, children)
    height = m.height
    while height and len(node[0]) == 1:
        node = node[1][0]
        height -= 1
    return PersistentMap(node, height, m.size - 1, m.tail)


def neighbours(m: PersistentMap[K, V], key: K) -> tuple[tuple[K, V] | None, K | None]:
    """The entry at the greatest key up to and including `key`, and the least key above it; None where there is none."""
    keys, values = m.tail
    above: K | None = keys[0] if keys else None
    if not keys or key < keys[0]:
        keys, values = m.root
        for _ in range(m.height):
            i = bisect_right(keys, key)
            if i < len(keys):
                above = keys[i]
            keys, values = values[i - 1 if i else 0]
    else:
        above = None
    i = bisect_right(keys, key)
    if i < len(keys):
        above = keys[i]
    return ((keys[i - 1], values[i - 1]) if i else None), above


def items(m: PersistentMap[K, V], start: K | None = None) -> Iterator[tuple[K, V]]:
    """The entries, keys ascending; from the least key on that is not below `start`."""
    stack: list[tuple[_Node, int]] = [(m.tail, 0), (m.root, m.height)]
    while stack:
        (keys, entries), height = stack.pop()
        if height:
            first = 0 if start is None else max(bisect_right(keys, start) - 1, 0)
            stack.extend((entries[i], height - 1) for i in range(len(keys) - 1, first - 1, -1))
        else:
            first = 0 if start is None else bisect_left(keys, start)
            yield from zip(keys[first:], entries[first:], strict=True)


def _leaf(m: PersistentMap[K, V], key: K) -> _Node:
    """The leaf in which key is or would be."""
    node = m.tail
    if not node[0] or key < node[0][0]:
        node = m.root
        for _ in range(m.height):
            keys, children = node
            i = bisect_right(keys, key)
            node = children[i - 1 if i else 0]
    return node


def _descend(m: PersistentMap[K, V], key: K) -> tuple[list[tuple[_Entries, _Entries, int]], _Node]:
    """The nodes above the leaf of key, from the root on, each with the position of the next; and the leaf."""
    path = []
    node = m.root
    for _ in range(m.height):
        keys, children = node
        i = bisect_right(keys, key)
        if i:
            i -= 1
        path.append((keys, children, i))
        node = children[i]
    return path, node


def _split(keys: _Entries, entries: _Entries, added: int) -> tuple[_Node, _Node | None]:
    """One node, or two where one would be too wide. Where entries come in ascending order the first stays full."""
    if len(keys) <= _WIDTH:
        return (keys, entries), None
    middle = _WIDTH if added == _WIDTH else _WIDTH // 2
    return (keys[:middle], entries[:middle]), (keys[middle:], entries[middle:])


def _mended(keys: _Entries, children: _Entries, i: int) -> _Node:
    """A node whose child i is too small: the child is joined with one beside it, or shares its entries."""
    if len(children) == 1:
        return (keys, children) if children[0][0] else _EMPTY
    left = i - 1 if i else 0
    pair = children[left : left + 2]
    merged_keys, merged = pair[0][0] + pair[1][0], pair[0][1] + pair[1][1]
    middle = len(merged_keys) if len(merged_keys) <= _WIDTH else len(merged_keys) // 2
    parts = [(merged_keys[:middle], merged[:middle])]
    if middle < len(merged_keys):
        parts.append((merged_keys[middle:], merged[middle:]))
    return (
        (*keys[:left], *(part[0][0] for part in parts), *keys[left + 2 :]),
        (*children[:left], *parts, *children[left + 2 :]),
    )


def _without(entries: _Entries, i: int) -> _Entries:
    return entries[:i] + entries[i + 1 :]


def _starts(count: int) -> range:
    return range(0, count, _WIDTH)
