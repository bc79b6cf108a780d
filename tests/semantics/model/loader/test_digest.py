"""The digest of a file's bytes."""

from __future__ import annotations

import hashlib
import mmap
import os
from pathlib import Path

import pytest
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.loader.source import digest

SIZES = [0, 1, (1 << 22) - 1, 1 << 22, (1 << 22) + 1, 9_000_001]


@pytest.mark.parametrize("size", SIZES)
def test_every_kind_of_source_gives_the_sha256_of_all_bytes(size: int, tmp_path: Path) -> None:
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    expected = (size, hashlib.sha256(content).hexdigest())
    path = tmp_path / "data"
    path.write_bytes(content)
    assert digest(path) == digest(content) == expected
    with path.open("rb") as file:
        file.seek(size // 2)
        assert digest(file.fileno()) == expected
        assert file.tell() == size // 2, "the caller's position stays"
        if size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                assert digest(mapped) == expected


def test_progress_adds_up_to_the_size_in_more_than_one_step() -> None:
    steps: list[int] = []
    assert digest(bytes(9_000_000), steps.append)[0] == sum(steps) == 9_000_000
    assert len(steps) > 2


def test_a_read_that_fails_is_a_model_error(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(ModelError, match="cannot be read to its end"):
            digest(fd)
    finally:
        os.close(fd)
