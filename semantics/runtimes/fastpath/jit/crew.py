"""Threads that run a list of operations together with the calling one, and wait in native code for the next list.

A thread of Python that sleeps needs some ten microseconds to begin, which is much of a small list. These look for work
for about a tenth of a millisecond after they did some, and sleep then until they are called. A list that ends before
they begin is not waited for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Final

import numpy as np

from ..workers import THREADS
from .listing import address

Execute = Callable[[int, int, int, int, int, int, int, int], None]
_DESK: Final = 8
"""Integers between desks: each lies in a line of the cache of its own."""
_LISTENS: Final = 1
_LIST: Final = "list"


class Crew:
    """The threads of a process. A list is run by all of them, one list at a time.

    Ctrl-C may come behind any call: so threads wait at a queue, which is native code and never half done, and one call
    says who runs a list.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forgets all threads."""
        self._users: dict[str, object] = {}  # who runs a list
        # What is to be done, then a desk for each thread: how far it is, and whether it listens.
        self._desks = np.zeros(_DESK * (THREADS + 1), np.int64)
        first = -address(self._desks) // 8 % _DESK
        self._desks = self._desks[first : first + _DESK * THREADS]
        self._place = address(self._desks)
        self._called: list[SimpleQueue[None]] = []

    def run(self, execute: Execute, given: tuple[int, int, int, int, int], scratch: int, size: int) -> bool:
        """Runs a list; False where another one is running. given: the first parameters of `routines.execute`.

        scratch: memory of `size` bytes for each thread, that of the calling one first.
        """
        user, users = object(), self._users
        try:
            if users.setdefault(_LIST, user) is not user:
                return False
            self._desks[:7] = (*given, scratch, size)
            self._call(execute)
            execute(*given, scratch, self._place, THREADS - 1)
        finally:
            if _LIST in users and users[_LIST] is user:  # without a call, behind which it could be interrupted
                del users[_LIST]
        return True

    def _call(self, execute: Execute) -> None:
        while len(self._called) < THREADS - 1:
            called: SimpleQueue[None] = SimpleQueue()
            self._called.append(called)  # first: there are never two threads at a desk
            work = (execute, called, self._desks, len(self._called))
            Thread(target=_serve, args=work, daemon=True, name="sonnx native").start()
        for number, called in enumerate(self._called, 1):
            if called.empty() and not self._desks[_DESK * number + _LISTENS]:
                called.put(None)


def _serve(
    execute: Execute, called: SimpleQueue[None], desks: np.ndarray[tuple[int], np.dtype[np.int64]], number: int
) -> None:
    place = address(desks)
    while True:
        called.get()
        execute(0, 0, number, 0, 0, 0, place, 0)


CREW: Final = Crew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CREW.begin)
