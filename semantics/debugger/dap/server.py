"""The adapter on standard input and output, or on a port of this machine, one client after the other."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

HOST: Final = "127.0.0.1"
UNREADABLE: Final = 2
"""The exit code where what came was no stream of messages."""


def claimed_output() -> int:
    """A descriptor of standard output for the protocol alone: whatever else is written to descriptor 1, by Python or by
    a library, goes to standard error. To be called before anything is imported that may print."""
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return wire


def on_stdio(wire: int) -> None:
    """Serves the client at the other end of standard input and of the descriptor, and ends the process."""
    from .worker import serve

    def send(data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(wire, left) :]

    good = serve(lambda count: os.read(0, count), send, stuck=_leave)
    _leave(0 if good else UNREADABLE)


def _leave(code: int = 0) -> None:
    """Ends the process at once: taking a long history apart, state by state, would take seconds."""
    sys.stderr.flush()
    os._exit(code)


def on_port(port: int, ready: Callable[[int], object]) -> None:
    """Listens on a port of 127.0.0.1, 0: any free one, which `ready` is told, and serves clients until interrupted.

    Raises OSError where it cannot listen there.
    """
    from .worker import serve

    with socket.create_server((HOST, port)) as listening:
        ready(listening.getsockname()[1])
        while True:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                serve(connection.recv, connection.sendall)
                connection.shutdown(socket.SHUT_RDWR)
