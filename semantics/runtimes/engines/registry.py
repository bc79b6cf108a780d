"""Which engines there are: those that entry points of the group `sonnx.engines` name, any backend by its module, and
the fast path with kernels of one's own by their file, or with an execution provider."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from ...errors import ModelError
from ...model.path import quote
from .protocol import Engine, Remote

GROUP: Final = "sonnx.engines"
BACKEND: Final = "backend:"
"""Before the name of a module with the functions of an onnx.backend.base.Backend, as in `backend:my.runtime`."""

KERNELS: Final = "numpy:"
"""Before the path of a Python file with kernels for operators of one's own, as in `numpy:kernels.py`."""

PROVIDER: Final = "provider:"
"""Before an execution provider with its options, as in `provider:onnxruntime:process=own`."""


def names() -> tuple[str, ...]:
    """The engines that entry points name, sorted."""
    return tuple(sorted(_found()))


def engine(name: str) -> Engine:
    """The engine of a name. Raises ModelError, which says what there is, for a name that stands for none."""
    if name.startswith(KERNELS):
        from ..fastpath.own_kernels import kernels_of_file
        from .own import Numpy

        return Numpy(name, kernels_of_file(Path(name.removeprefix(KERNELS))))
    if name.startswith(PROVIDER):
        return with_providers((name.removeprefix(PROVIDER),), name)
    if name.startswith(BACKEND):
        from .python_engine import backend

        return backend(name.removeprefix(BACKEND))
    point = _found().get(name)
    if point is None:
        close = get_close_matches(name, _found(), 1)
        there = f"did you mean {quote(close[0])}?" if close else f"there are {', '.join(names())}"
        more = f"or name a backend's module as {BACKEND}MODULE, kernels of your own as {KERNELS}FILE.py"
        raise ModelError(f"no engine {quote(name)}: {there}; {more}")
    try:
        made: Engine = point.load()
    except (ImportError, AttributeError) as error:
        raise ModelError(f"the engine {quote(name)} cannot be loaded ({error}): install what it needs") from None
    return made


def with_providers(wanted: Sequence[str], name: str = "the fast path") -> Engine:
    """The fast path with execution providers. Raises ModelError for a name or an option that there is not."""
    from ..fastpath.providers import chosen_providers
    from .own import Numpy

    return Numpy(name, providers=chosen_providers(wanted))


def started(name: str) -> Engine:
    """The engine of a name. Raises ModelError also where what it runs is not installed or does not start."""
    chosen = engine(name)
    why = chosen.unusable() if isinstance(chosen, Remote) else ""
    if why:
        raise ModelError(f"the engine {quote(name)} cannot be used: {why}")
    return chosen


def _found() -> dict[str, EntryPoint]:
    return {it.name: it for it in entry_points(group=GROUP)}
