"""The facts of a model: everything that `spec/1-syntax.sonnx` declares as fact, gathered into one structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from sonnx.spec.language.syntax import Sort

from ..model.graph import Model
from ..model.path import operator_text, quote
from . import graphs as graph_facts
from . import onnx as onnx_facts
from . import operators as operator_facts
from . import value_types
from .structure import Element, Structure
from .types import ClaimsSource

ASKING = frozenset((
    "rank", "dim", "axes",
    "type_name", "ill_typed", "admitted_types", "split_variables", "contradictions", "open_types", "has_type",
    "inference_ran", "objections", "refused", "admitted", "objection",
))  # fmt: skip
"""The facts that ask for the claims of shape inference whatever the model; others do where it says too little."""


def structure(model: Model, claims: ClaimsSource = None) -> Structure:
    """The structure of a model. claims: what shape inference says about its types; without it those stay unknown."""
    providers = {
        **graph_facts.providers(model),
        **operator_facts.providers(model, claims),
        **onnx_facts.providers(model, claims),
        **value_types.providers(model),
    }
    return Structure(providers, _place(model))


def _place(model: Model) -> Callable[[Sort, Element], str]:
    """The path of an element; a function by its name, any other value as it is written."""
    numbered = cache(lambda: graph_facts.ports(model))
    places: Mapping[str, Callable[[Element], str]] = {
        "Graph": lambda g: model.graphs[int(g)].path,
        "Node": lambda n: model.nodes[int(n)].path,
        "Tensor": lambda t: model.tensors[int(t)].path,
        "Port": lambda p: _port(model, *numbered()[int(p)]),
        "Function": lambda f: _function(*graph_facts.functions(model)[int(f)]),
        "Text": lambda text: quote(str(text)),
        **onnx_facts.places(model),
    }

    def place(sort: Sort, element: Element) -> str:
        spell = places.get(sort.name)
        if spell is not None:
            return spell(element)
        return str(element).lower() if isinstance(element, bool) else str(element)

    return place


def _port(model: Model, node: int, position: int) -> str:
    return f"{model.nodes[node].path}>{position}"


def _function(domain: str, name: str, overload: str) -> str:
    text = operator_text(domain, name)
    return f"{text}:{operator_text('', overload)}" if overload else text
