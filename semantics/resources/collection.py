"""Pausing the cyclic garbage collector while very many objects are made that are no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Without automatic collection: it would look at millions of tuples again and again, and free none of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def settled() -> None:
    """What is there now is no garbage: later collections leave it out, which would take seconds to look through it."""
    gc.freeze()
