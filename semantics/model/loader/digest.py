"""The SHA-256 of the bytes of a file, read in blocks: memory does not grow with the file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from mmap import mmap
from pathlib import Path
from typing import Final

from ...errors import ModelError

_BLOCK: Final = 1 << 22


def digest(source: int | Path | bytes | mmap, progress: Callable[[int], None] | None = None) -> tuple[int, str]:
    """The size in bytes and the SHA-256, in hexadecimal, of all bytes of `source`.

    source: an open file descriptor, which stays open and is read from its start, a regular file, or the bytes.
    progress is called with the number of bytes of each block. Raises ModelError when reading fails.
    """
    blocks = _blocks(source)
    total = hashlib.sha256()
    size = 0
    try:
        for block in blocks:
            total.update(block)
            size += len(block)
            if progress is not None:
                progress(len(block))
    except OSError as error:
        raise ModelError(f"the file cannot be read to its end ({error.strerror}): try again") from None
    return size, total.hexdigest()


def _blocks(source: int | Path | bytes | mmap) -> Iterator[bytes]:
    if isinstance(source, int):
        offset = 0
        while block := os.pread(source, _BLOCK, offset):
            offset += len(block)
            yield block
    elif isinstance(source, Path):
        with source.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
    else:
        for offset in range(0, len(source), _BLOCK):
            yield source[offset : offset + _BLOCK]
