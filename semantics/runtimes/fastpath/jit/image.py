"""Object code as an image that can be laid anywhere in memory: LLVM is needed to make code, not to run it.

An object file of ELF for x86-64 that was made for any distance between its parts holds whole addresses alone. They are
noted as distances from the beginning of the image, or as functions of C by name. Source: System V Application Binary
Interface, chapters 4 (object files) and 5; its supplement for AMD64, 4.4 (relocation).
"""

from __future__ import annotations

import ctypes
import json
import mmap
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_ALLOCATED, _RELOCATIONS, _SYMBOLS, _EMPTY = 0x2, 4, 2, 8
_UNDEFINED, _COMMON = 0, 0xFFF2
_ADDRESS: Final = 1
"""R_X86_64_64: the address of a symbol, plus a number, in 8 bytes."""
_HEAD: Final = b"\x7fELF\x02\x01"


@dataclass(frozen=True, slots=True)
class Image:
    """Code and what it refers to. inside: places of 8 bytes that hold a distance from the beginning; outside: those
    that hold the address of a function of C; start: where the function begins."""

    content: bytes
    inside: tuple[int, ...]
    outside: Mapping[str, tuple[int, ...]]
    start: int


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


def image_of(code: bytes, name: str) -> Image | None:
    """The image of object code, None where it is of another form. name: of the function that is to be called."""
    if sys.platform != "linux" or code[:6] != _HEAD or struct.unpack_from("<HH", code, 16) != (1, 62):
        return None
    sections = tuple(_sections(code))
    content = bytearray()
    begins: dict[int, int] = {}
    for number, section in enumerate(sections):
        if section.flags & _ALLOCATED and section.name != ".eh_frame":
            begins[number] = _extended(content, section.align)
            whole = section.kind != _EMPTY
            content += code[section.offset : section.offset + section.size] if whole else bytes(section.size)
    (table,) = (it for it in sections if it.kind == _SYMBOLS)
    known: list[int | str | None] = []
    start = None
    for at in range(table.offset, table.offset + table.size, 24):
        text, _, _, place, value, size = struct.unpack_from("<IBBHQQ", code, at)
        called = _text(code, sections[table.link].offset + text)
        if place == _COMMON:
            known.append(_extended(content, value))
            content += bytes(size)
        elif place == _UNDEFINED:
            known.append(called)
        else:
            known.append(begins[place] + value if place in begins else None)
        if called == name and isinstance(known[-1], int):
            start = known[-1]
    inside: list[int] = []
    outside: dict[str, list[int]] = {}
    for section in sections:
        if section.kind != _RELOCATIONS or section.info not in begins:
            continue
        for at in range(section.offset, section.offset + section.size, 24):
            place, about, more = struct.unpack_from("<QQq", code, at)
            symbol, place = known[about >> 32], begins[section.info] + place
            if about & 0xFFFFFFFF != _ADDRESS or symbol is None or (isinstance(symbol, str) and more):
                return None
            if isinstance(symbol, str):
                outside.setdefault(symbol, []).append(place)
            else:
                inside.append(place)
                struct.pack_into("<q", content, place, symbol + more)
    if start is None:
        return None
    return Image(bytes(content), tuple(inside), {it: tuple(places) for it, places in outside.items()}, start)


def _sections(code: bytes) -> Iterator[_Section]:
    (table,) = struct.unpack_from("<Q", code, 40)
    count, names = struct.unpack_from("<HH", code, 60)
    rows = [struct.unpack_from("<IIQQQQIIQQ", code, table + 64 * k) for k in range(count)]
    for text, kind, flags, _, offset, size, link, info, align, _ in rows:
        yield _Section(_text(code, rows[names][4] + text), kind, flags, offset, size, link, info, align)


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode("ascii")


def _extended(content: bytearray, align: int) -> int:
    """The end of the content, after it was filled up to a multiple of a number."""
    content += bytes(-len(content) % max(1, align))
    return len(content)


def written(image: Image) -> bytes:
    """The image as bytes."""
    return json.dumps([image.start, image.inside, image.outside]).encode() + b"\n" + image.content


def read(content: bytes) -> Image:
    """What `written` wrote."""
    head, code = content.split(b"\n", 1)
    start, inside, outside = json.loads(head)
    return Image(code, tuple(inside), {name: tuple(places) for name, places in outside.items()}, start)


def laid(image: Image) -> tuple[int, mmap.mmap]:
    """The address of the function, and the memory that is to live as long as it is called.

    Raises OSError where memory cannot be made executable, AttributeError for a function that C lacks here.
    """
    memory = mmap.mmap(-1, len(image.content))
    memory[:] = image.content
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    c = ctypes.CDLL(None, use_errno=True)
    for place in image.inside:
        (distance,) = struct.unpack_from("<q", memory, place)
        struct.pack_into("<q", memory, place, base + distance)
    for name, places in image.outside.items():
        address = ctypes.cast(getattr(c, name), ctypes.c_void_p).value or 0
        for place in places:
            struct.pack_into("<q", memory, place, address)
    protect = c.mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(base, len(image.content), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "memory cannot be made executable")
    return base + image.start, memory
