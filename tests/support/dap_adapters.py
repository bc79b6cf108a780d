"""Adapters to talk to: spawned, or listening on a port."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO

from dap_client import PATIENCE, Client

COMMAND = (sys.executable, "-c", "from sonnx.spec.cli import main; main()", "dap")
"""How the adapter is started."""


def spawned(*arguments: str, command: Sequence[str] = COMMAND) -> Client:
    """A client of an adapter that it starts, over its standard streams."""
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the client
    process = subprocess.Popen([*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    to, out = _stream(process.stdin), _stream(process.stdout)

    def close() -> None:
        process.kill()
        process.wait()
        for stream in (to, out, errors):
            with suppress(OSError):
                stream.close()

    def write(content: bytes) -> None:
        to.write(content)
        to.flush()

    return Client(write, out.read, close, process, errors)


def connected(port: int) -> Client:
    """A client of an adapter that listens."""
    link = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    link.settimeout(None)
    stream = link.makefile("rb")

    def close() -> None:
        with suppress(OSError):
            link.shutdown(socket.SHUT_RDWR)
        link.close()

    return Client(link.sendall, stream.read, close)


@contextmanager
def deadline(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Kills a process that is not done with something in time."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _stream(found: IO[bytes] | None) -> IO[bytes]:
    if found is None:
        raise RuntimeError("a stream is missing")
    return found
