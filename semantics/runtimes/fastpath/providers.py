"""Which providers there are: entry points of the group `sonnx.execution_providers`, by the names of the providers.

An entry point names something that gives a provider when it is called, without arguments or with options by name,
which are texts. A provider is asked for by its name, with or without `ExecutionProvider` at the end; behind a colon
options may stand: `onnxruntime:process=own,level=basic`. The option `only` is every provider's: the nodes that it is
asked about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.metadata import entry_points
from inspect import signature
from typing import Final

from ...errors import ModelError
from ...model.graph import Node, NodeId
from ...model.path import operator_text, quote
from . import provider
from .kernel import Allocate
from .numpy_provider import NumpyExecutionProvider
from .provider import ExecutionProvider, GraphViewer

GROUP: Final = "sonnx.execution_providers"
ONLY: Final = "only"
"""The option that names a node, by its path, its name or its operator; repeatable."""
_SUFFIX: Final = "ExecutionProvider"
_DEFAULT: Final = NumpyExecutionProvider.__name__


def available_providers() -> tuple[str, ...]:
    """The names of the providers that are installed, the default one last."""
    names = {point.name for point in entry_points(group=GROUP)} - {_DEFAULT}
    return (*sorted(names), _DEFAULT)


def chosen_providers(wanted: Sequence[str | ExecutionProvider]) -> tuple[ExecutionProvider, ...]:
    """The providers in the order of preference; the default one stands at the end where it is not asked for earlier.

    Raises ModelError for a name that no installed provider has, and for an option that it has not.
    """
    chosen = [_named(it) if isinstance(it, str) else it for it in wanted]
    for it in chosen:
        if not it.name.endswith(_SUFFIX):
            raise ModelError(f"the provider {quote(it.name)} is to have a name that ends in {_SUFFIX}")
    # One that is asked about some nodes only is not complete.
    if _DEFAULT not in (it.name for it in chosen if not isinstance(it, Restricted)):
        chosen.append(NumpyExecutionProvider())
    return tuple(chosen)


# ---- Names and options ------------------------------------------------------------------------


def _named(text: str) -> ExecutionProvider:
    asked, _, rest = text.partition(":")
    points = {point.name: point for point in entry_points(group=GROUP)}
    known = available_providers()
    name = next((it for it in known if asked.lower() in (it.lower(), it.removesuffix(_SUFFIX).lower())), "")
    if not name:
        short = {it.removesuffix(_SUFFIX).lower(): it for it in known}
        close = get_close_matches(asked.removesuffix(_SUFFIX).lower(), short, 1)
        hint = f"did you mean {short[close[0]]}?" if close else f"there are {', '.join(known)}"
        raise ModelError(f"no execution provider {quote(asked)} is installed: {hint}")
    stated = list(_options(name, rest)) if rest else []
    only = tuple(value for key, value in stated if key == ONLY)
    options = {key: value for key, value in stated if key != ONLY}
    if len(options) + len(only) < len(stated):
        raise ModelError(f"the options of {name} state one twice: {quote(rest)}")
    try:
        factory: Callable[..., ExecutionProvider] = _default if name == _DEFAULT else points[name].load()
    except (ImportError, AttributeError) as error:
        raise ModelError(f"{name} cannot be loaded ({error}): install what it needs") from None
    taken = {key for key, it in signature(factory).parameters.items() if it.annotation in (str, "str")} - {"name"}
    for key in options:
        if key not in taken:
            there = ", ".join(sorted({*taken, ONLY}))
            raise ModelError(f"{name} has no option {quote(key)}: it has {there}")
    made = factory(**options)
    return Restricted(made, only) if only else made


def _default() -> ExecutionProvider:
    return NumpyExecutionProvider()


def _options(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Keys and values. A comma that no key follows belongs to the value."""
    for piece in re.split(r",(?=[a-z]+=)", text):
        key, equals, value = piece.partition("=")
        if not equals or not key or not value:
            raise ModelError(f"the options of {name} are written KEY=VALUE,...; {quote(piece)} is none")
        yield key, value


# ---- Some nodes only --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restricted:
    """A provider that is asked about some nodes only. only: their paths, names or operators."""

    inner: ExecutionProvider
    only: tuple[str, ...]

    @property
    def name(self) -> str:
        """That of the provider."""
        return self.inner.name

    def get_kernel_registry(self) -> provider.KernelRegistry | None:
        """Its kernels."""
        return self.inner.get_kernel_registry()

    def get_capability(
        self, graph: GraphViewer, kernel_lookup: provider.KernelRegistry | None
    ) -> Sequence[provider.ComputeCapability]:
        """Its offers about these nodes. Raises ModelError for one that the model has not."""
        nodes = graph.program.model.nodes
        for it in self.only:
            if not any(_is(it, node) for node in nodes):
                close = get_close_matches(it, [node.path for node in nodes], 1)
                hint = f"did you mean {close[0]}?" if close else "name a path, a name or an operator"
                raise ModelError(f"{self.name} is to run {quote(it)}, and the model has no such node: {hint}")
        wanted = tuple(n for n in graph.nodes if any(_is(it, nodes[n]) for it in self.only))
        return self.inner.get_capability(replace(graph, nodes=wanted), kernel_lookup) if wanted else ()

    def compile(
        self, fused: Sequence[provider.FusedNodeAndGraph]
    ) -> Sequence[provider.NodeComputeInfo | provider.Declined]:
        """Its functions."""
        return self.inner.compile(fused)

    def create_allocator(self, info: provider.MemoryInfo) -> Allocate | None:
        """Its memory."""
        return self.inner.create_allocator(info)

    def on_run_start(self, options: provider.RunOptions) -> None:
        """It is told."""
        self.inner.on_run_start(options)

    def on_run_end(self, options: provider.RunOptions) -> None:
        """It is told."""
        self.inner.on_run_end(options)

    def why_not(self, graph: GraphViewer, n: NodeId) -> str:
        """Why it does not offer a node."""
        if any(_is(it, graph.node(n)) for it in self.only):
            return provider.why_not(self.inner, graph, n)
        return f"it is to run {', '.join(self.only)} only"


def _is(text: str, node: Node) -> bool:
    """True where a text names a node: /3:Conv is /3:Conv("first") too."""
    path = node.path
    operator = operator_text(node.domain, node.op_type)
    return text in (path, node.name, operator) or (path.startswith(text + "(") and path.endswith('")'))
