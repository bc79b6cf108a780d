"""The requests `readMemory` and `writeMemory`: the bytes of a tensor, as raw_data has them, or those of M."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from ..inspection.bytes_of import bytes_of_instance, bytes_of_memory
from ..timeline.refused import Refused
from .adapter import Adapter
from .arguments import LARGEST, Arguments
from .edits import check_edits, edited
from .memory_references import referred
from .registry import Body, Handler

_MOST: Final = 1 << 26


def _read(adapter: Adapter, given: Arguments) -> Body:
    there, tensor = referred(adapter.session, given.text("memoryReference"))
    offset = given.whole("offset", 0, least=-LARGEST)
    count = given.whole("count")
    if count > _MOST:
        raise Refused(f"at most {_MOST} bytes are read at once")
    found = bytes_of_memory(there) if tensor is None else bytes_of_instance(there, tensor)
    data, missing = found.read(offset, count)
    body = {"address": f"0x{max(found.address + offset, 0):x}"}
    if data:
        body["data"] = base64.b64encode(data).decode("ascii")
    return {**body, "unreadableBytes": missing} if missing else body


def _write(adapter: Adapter, given: Arguments) -> Body:
    check_edits(adapter)
    session = adapter.session
    there, tensor = referred(session, given.text("memoryReference"))
    if tensor is None:
        raise Refused("bytes are changed in a tensor: take the memory reference of a tensor")
    if there.index != session.index:
        raise Refused(f"this is the memory at step {there.index}: go there (seek {there.index}) to change it")
    offset, partial = given.whole("offset", 0, least=-LARGEST), given.flag("allowPartial")
    try:
        data = base64.b64decode(given.text("data"), validate=True)
    except (binascii.Error, ValueError):
        raise Refused('"data" must be bytes in base64') from None
    size = bytes_of_instance(session, tensor).size
    first, end = max(offset, 0), min(offset + len(data), size)
    if (first, end) != (offset, offset + len(data)) and not partial:
        raise Refused(f"the tensor has {size} bytes: bytes {offset} to {offset + len(data)} are not all in it")
    written = max(end - first, 0)
    if written:
        part = data[first - offset : end - offset]
        edited(adapter, f"poke `{tensor.path}` {first} {part.hex()}", tensor, first, written)
    return {"offset": first, "bytesWritten": written} if partial else {"bytesWritten": written}


HANDLERS = (
    Handler("readMemory", _read, {"supportsReadMemoryRequest": True}),
    Handler("writeMemory", _write, {"supportsWriteMemoryRequest": True}),
)
"""The handlers of this file."""
