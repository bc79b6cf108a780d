"""M: what was written is read, every memory of a run stays as it was, and costs what was written."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sonnx.semantics.errors import InternalError
from sonnx.semantics.machine.memory import Memory, Uninitialised, erase, gap, history_bytes, read, resize, write
from sonnx.semantics.model.elements import decode, encode
from sonnx.semantics.resources.persistent import items

SIZE = 120
RANGES = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda pair: (min(pair), max(pair)))
OPERATIONS = st.lists(st.tuples(st.sampled_from(["bytes", "view", "writable", "erase"]), RANGES), max_size=60)


def run(operations: list[tuple[str, tuple[int, int]]]) -> list[tuple[Memory, list[int | None]]]:
    """Each memory with the bytes that it must hold."""
    M, model = Memory(SIZE), [None] * SIZE
    states: list[tuple[Memory, list[int | None]]] = [(M, list(model))]
    for number, (what, (start, end)) in enumerate(operations):
        bytes_ = bytes((number + i) % 256 for i in range(start, end))
        data = {"view": memoryview(bytes_), "writable": memoryview(bytearray(bytes_))}.get(what, bytes_)
        M = erase(M, start, end - start) if what == "erase" else write(M, start, data)
        if what == "writable" and isinstance(data, memoryview):
            data[:] = bytes(len(data))
        after = list(states[-1][1])
        after[start:end] = [None] * (end - start) if what == "erase" else bytes_
        states.append((M, after))
    return states


@given(OPERATIONS, st.lists(RANGES, min_size=5, max_size=5))
def test_every_memory_of_a_run_reads_as_an_array_of_bytes_would(
    operations: list[tuple[str, tuple[int, int]]], ranges: list[tuple[int, int]]
) -> None:
    for M, expected in run(operations):
        for start, end in [*ranges, (0, SIZE)]:
            wanted = expected[start:end]
            found = read(M, start, end - start)
            if None in wanted:
                assert found == gap(M, start, end - start) == Uninitialised(start + wanted.index(None))
            else:
                assert gap(M, start, end - start) is None
                assert not isinstance(found, Uninitialised)
                assert bytes(found) == bytes(byte for byte in wanted if byte is not None)


@given(OPERATIONS)
def test_segments_are_ordered_disjoint_and_not_empty(operations: list[tuple[str, tuple[int, int]]]) -> None:
    for M, _ in run(operations):
        end = 0
        for start, data in items(M.segments):
            assert end <= start
            assert len(data) > 0
            end = start + len(data)
        assert end <= SIZE


def test_what_lies_in_one_region_is_read_without_a_copy_and_read_only() -> None:
    array = np.arange(10_000, dtype=np.float32)
    M = write(Memory(100_000), 64, encode(array))
    M = write(M, 80_000, b"beside")
    found = read(M, 64, array.nbytes)
    assert isinstance(found, memoryview)
    assert found.readonly
    assert np.shares_memory(decode(found, "float", (10_000,)), array)
    part = read(M, 64 + 400, 4000)
    assert isinstance(part, memoryview)
    assert np.shares_memory(decode(part, "float", (1000,)), array)


def test_a_region_keeps_its_bytes_without_a_copy_when_others_cut_into_it() -> None:
    array = np.arange(10_000, dtype=np.float32)
    M = write(Memory(100_000), 0, encode(array))
    M = write(M, 20_000, b"\x01" * 4)
    head, tail = read(M, 0, 20_000), read(M, 20_004, 19_996)
    assert isinstance(head, memoryview)
    assert isinstance(tail, memoryview)
    assert np.shares_memory(np.frombuffer(head, np.float32), array)
    assert np.shares_memory(np.frombuffer(tail, np.float32), array)


@pytest.mark.parametrize(
    ("offset", "data", "whole"),
    [
        (10, b"AB", b"ABcdef"),
        (14, b"EF", b"abcdEF"),
        (12, b"CD", b"abCDef"),
        (10, b"ABCDEF", b"ABCDEF"),
    ],
    ids=["front", "back", "middle", "all"],
)
def test_what_a_write_does_not_cover_stays(offset: int, data: bytes, whole: bytes) -> None:
    assert read(write(write(Memory(100), 10, b"abcdef"), offset, data), 10, 6) == whole


def test_reading_what_was_never_written_names_the_first_such_byte() -> None:
    M = write(write(Memory(100), 10, b"abc"), 14, b"def")
    assert read(M, 0, 1) == Uninitialised(0)
    assert read(M, 10, 7) == Uninitialised(13)
    assert read(M, 14, 4) == Uninitialised(17)
    assert read(erase(M, 11, 1), 10, 3) == Uninitialised(11)
    assert read(Memory(100), 5, 0) == b""


def test_ranges_outside_of_m_are_defects() -> None:
    M = Memory(10)
    for offset, data in ((-1, b"a"), (10, b"a"), (0, bytes(11))):
        with pytest.raises(InternalError, match="outside a memory of 10 bytes"):
            write(M, offset, data)
        with pytest.raises(InternalError, match="outside a memory of 10 bytes"):
            read(M, offset, len(data))
    with pytest.raises(InternalError, match="outside"):
        read(M, 5, -1)


def test_m_can_grow_and_shrink_down_to_what_is_written() -> None:
    M = write(resize(Memory(0), 10), 4, b"abc")
    assert read(resize(M, 7), 4, 3) == b"abc"
    assert resize(M, 1 << 60).size == 1 << 60
    with pytest.raises(InternalError, match="cannot hold"):
        resize(M, 6)


def test_a_mapped_region_is_not_copied_and_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    array = np.arange(100_000, dtype=np.float32)
    path.write_bytes(b"xyz" + array.tobytes())
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    weights = decode(memoryview(mapping)[3:], "float", (100_000,))
    M = write(Memory(1_000_000), 128, encode(weights))
    found = read(M, 128, 400_000)
    assert not isinstance(found, Uninitialised)
    assert np.shares_memory(np.frombuffer(found, np.uint8), np.frombuffer(mapping, np.uint8))
    assert (decode(found, "float", (100_000,)) == array).all()
    assert history_bytes([M]) < 2000


def test_a_history_costs_what_was_written() -> None:
    M = Memory(1 << 40)
    states, written = [M], 0
    for step in range(300):
        array = np.full(10_000, step, np.float32)
        M = write(M, (step % 7) * 40_000, encode(array))
        states.append(M)
        written += array.nbytes
    assert written <= history_bytes(states) < 1.02 * written


def test_a_value_that_is_written_again_costs_nothing() -> None:
    array = np.zeros(100_000, np.float32)
    M = write(Memory(1 << 30), 0, encode(array))
    once = history_bytes([M])
    for copy in range(1, 20):
        found = read(M, 0, array.nbytes)
        assert not isinstance(found, Uninitialised)
        M = write(M, copy * array.nbytes, encode(decode(found, "float", (100_000,)).reshape(100, 1000)))
    assert array.nbytes <= once <= history_bytes([M]) < array.nbytes + 20_000


def test_a_step_costs_what_it_writes_and_not_n() -> None:
    states = [write(Memory(1 << 60), 64 * step, bytes(8)) for step in range(100)]
    M = states[0]
    for step in range(20_000):
        M = write(M, 64 * step, bytes(8))
        states.append(M)
    assert history_bytes(states[-1000:]) - history_bytes(states[-1001:-1000]) < 1000 * 1200
