"""The thread that runs commands and reads values, one after the other, so that the screen stays alive meanwhile.

It alone touches the timeline of a session, which changes as it grows.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread, get_ident
from typing import TypeVar

Result = TypeVar("Result")


class Aborted(Exception):  # noqa: N818 - asked for, no error
    """A person has ended the job."""


class WorkThread:
    """Jobs of one thread, which ends with the process."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], None], Callable[[], None]]] = SimpleQueue()
        self._number = 0
        self._abortable = False
        Thread(target=self._serve, daemon=True).start()

    async def do(self, job: Callable[[], Result], *, abortable: bool = False) -> Result:
        """What a job gives, or raises. Raises Aborted where it was ended by `abort`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def deliver(act: Callable[[], None]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(lambda: None if future.done() else act())

        def run() -> None:
            self._abortable = abortable
            try:
                result = job()
            except Exception as error:
                raised = error
                deliver(lambda: future.set_exception(raised))
            else:
                deliver(lambda: future.set_result(result))
            finally:
                self._abortable = False

        self._jobs.put((run, lambda: deliver(lambda: future.set_exception(Aborted()))))
        return await future

    def abort(self) -> None:
        """Ends the job at hand where that may be ended, as a second Ctrl-C does at the prompt."""
        if self._abortable:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._number), ctypes.py_object(KeyboardInterrupt)
            )

    def _serve(self) -> None:
        self._number = get_ident()
        while True:
            job, give_up = self._jobs.get()
            try:
                job()
            except KeyboardInterrupt:  # `deliver` minds no second outcome, if this comes when the job is done
                give_up()
