"""Which providers there are: entry points of the group `sonnx.execution_providers`, by the names of the providers.

An entry point names something that gives a provider when it is called without arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Final

from ...errors import ModelError
from ...model.path import quote
from .numpy_provider import NumpyExecutionProvider
from .provider import ExecutionProvider

GROUP: Final = "sonnx.execution_providers"
_SUFFIX: Final = "ExecutionProvider"
_DEFAULT: Final = NumpyExecutionProvider.__name__


def available_providers() -> tuple[str, ...]:
    """The names of the providers that are installed, the default one last."""
    names = {point.name for point in entry_points(group=GROUP)} - {_DEFAULT}
    return (*sorted(names), _DEFAULT)


def chosen_providers(wanted: Sequence[str | ExecutionProvider]) -> tuple[ExecutionProvider, ...]:
    """The providers in the order of preference; the default one stands at the end where it is not asked for earlier.

    Raises ModelError for a name that no installed provider has.
    """
    chosen = [_named(it) if isinstance(it, str) else it for it in wanted]
    for provider in chosen:
        if not provider.name.endswith(_SUFFIX):
            raise ModelError(f"the provider {quote(provider.name)} is to have a name that ends in {_SUFFIX}")
    if _DEFAULT not in (it.name for it in chosen):
        chosen.append(NumpyExecutionProvider())
    return tuple(chosen)


def _named(name: str) -> ExecutionProvider:
    if name == _DEFAULT:
        return NumpyExecutionProvider()
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        close = get_close_matches(name, available_providers(), 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(available_providers())}"
        raise ModelError(f"no execution provider {quote(name)} is installed: {hint}")
    made: ExecutionProvider = points[name].load()()
    return made
