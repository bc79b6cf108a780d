"""The number of threads of an engine: one, so that processes side by side do not wait for each other, and that
results do not depend on how many processes there are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

VARIABLES: Final = (
    "SONNX_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""The variables that linear algebra reads when it is loaded."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes that are started now compute with one thread; so does this one, if NumPy is not loaded yet."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
