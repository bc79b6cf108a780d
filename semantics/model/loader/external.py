"""External data: the elements of a tensor in a file of their own beside the model.

A model is a guest's file: nothing that it names is opened or looked at unless it is a regular file in the model's own
folder, reached without links.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ...errors import ModelError
from ..elements import BITS
from ..graph import Storage
from ..path import quote

_KEYS: Final = frozenset({"location", "offset", "length", "checksum"})
_NUMBER: Final = re.compile("[0-9]{1,19}")
_SHA1: Final = re.compile("[0-9a-fA-F]{40}")
_DRIVE: Final = re.compile("[A-Za-z]:")
_MAX_ELEMENTS: Final = 2**63 - 1


def locate(
    folder: Path, tensor_name: str, entries: Mapping[str, str] | Iterable[tuple[str, str]], needed: int | None
) -> Storage:
    """The place of the elements of an external tensor. entries: its external_data; needed: its size in bytes, if known.

    Raises ModelError when a key is unknown, missing or given twice, a number is none or leads out of the file, the
    length is not the needed one, or the file may not be opened (see open_external). A checksum must look like a SHA-1;
    it is not compared, the certificate's own digest names the file.
    """
    where = f"external data of tensor {quote(tensor_name)}"
    values = _values(where, entries.items() if isinstance(entries, Mapping) else entries)
    name = _checked_name(where, values["location"])
    offset = _number(where, "offset", values.get("offset", "0"))
    fd = _open(where, folder, name)
    try:
        size = os.fstat(fd).st_size
    finally:
        os.close(fd)
    if offset > size:
        raise ModelError(f"{where} start at byte {offset}, {quote(name)} has {size} bytes: save the model again")
    length = _number(where, "length", values["length"]) if "length" in values else size - offset
    if offset + length > size:
        raise ModelError(
            f"{where} end at byte {offset + length}, {quote(name)} has {size} bytes: fetch that file again"
        )
    if needed is not None and length != needed:
        raise ModelError(f"{where} have {length} bytes, its type and shape need {needed}: save the model again")
    return Storage(name, offset, length)


def open_external(folder: Path, name: str) -> int:
    """Open a file of external data for reading, relative to the model's folder; the caller closes the descriptor.

    Every folder on the way is opened without following links, relative to the one before, so that nothing can be
    exchanged in between. The file must be regular and have no second name (hard link). The model's folder itself may
    be reached through links. Raises ModelError.
    """
    where = f"external data {quote(name)}"
    return _open(where, folder, _checked_name(where, name))


def checked_dims(dims: Sequence[int], element: str, tensor_name: str = "") -> int | None:
    """The bytes that the raw data of a tensor of this shape take; None when the element type has no fixed size.

    element: ONNX's spelling (float, int64 ...), in either case. Raises ModelError for a negative dimension, and when
    the dimensions, zeros aside, multiply to more elements than 63 bits count.
    """
    where = f"the stored tensor {quote(tensor_name)}"
    if any(dim < 0 for dim in dims):
        raise ModelError(f"{where} has the negative dimension {min(dims)}: export the model again")
    count = 1
    for dim in dims:
        count *= max(dim, 1)
        if count > _MAX_ELEMENTS:
            raise ModelError(f"{where} has dimensions of more than 2**63 elements: export the model again")
    bits = BITS.get(element.lower())
    return None if bits is None else (math.prod(dims) * bits + 7) // 8


def _values(where: str, entries: Iterable[tuple[str, str]]) -> dict[str, str]:
    values: dict[str, str] = {}
    for key, value in entries:
        if key not in _KEYS:
            raise ModelError(f"{where} have the key {quote(key)}, which ONNX does not define: save the model again")
        if key in values:
            raise ModelError(f"{where} have the key {quote(key)} twice: save the model again")
        values[key] = value
    if "location" not in values:
        raise ModelError(f"{where} name no file (key location): save the model again")
    if not _SHA1.fullmatch(values.get("checksum", "0" * 40)):
        raise ModelError(f"{where} have a checksum that is no SHA-1: save the model again")
    return values


def _number(where: str, key: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ModelError(f"{where} have the {key} {quote(text[:40])}, no decimal number of bytes: save the model again")
    return int(text)


def _checked_name(where: str, name: str) -> str:
    """The name without "." in it, when it is a relative path downwards."""
    parts = name.split("/")
    if name.startswith(("/", "\\")) or _DRIVE.match(name):
        fault = "is an absolute path"
    elif "\0" in name or "\\" in name:
        fault = "has a NUL or a backslash"
    elif ".." in parts:
        fault = "leads out of the model's folder"
    elif "" in parts or parts[-1] == ".":
        fault = "names no file"
    else:
        return "/".join(part for part in parts if part != ".")
    raise ModelError(f"{where}: {quote(name)} {fault}: give a path relative to the model, downwards")


def _open(where: str, folder: Path, name: str) -> int:
    if os.open not in os.supports_dir_fd:
        raise ModelError(f"{where}: this system cannot open files without following links: use a POSIX system")
    *parents, last = (part.encode() for part in name.split("/"))
    fd = -1
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in parents:
            _refuse_link(where, name, os.stat(part, dir_fd=fd, follow_symlinks=False))
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = inner
        seen = os.stat(last, dir_fd=fd, follow_symlinks=False)
        _refuse_link(where, name, seen)
        if not stat.S_ISREG(seen.st_mode):
            raise ModelError(f"{where}: {quote(name)} is no regular file: put the data themselves there")
        if seen.st_nlink != 1:
            raise ModelError(f"{where}: {quote(name)} has a second name (hard link): put a copy of the file there")
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=fd)
        opened = os.fstat(file)
        if (opened.st_dev, opened.st_ino, opened.st_nlink) != (seen.st_dev, seen.st_ino, 1):
            os.close(file)
            raise ModelError(f"{where}: {quote(name)} was exchanged while it was opened: try again")
        return file
    except FileNotFoundError:
        raise ModelError(f"{where}: {quote(name)} is not beside the model: put it there") from None
    except OSError as error:
        raise ModelError(f"{where}: {quote(name)} cannot be opened ({error.strerror}): make it readable") from None
    finally:
        if fd >= 0:
            os.close(fd)


def _refuse_link(where: str, name: str, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise ModelError(f"{where}: {quote(name)} is or passes a symbolic link: put a copy of the file there")
