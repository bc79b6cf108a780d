"""The facts of a model: everything that `spec/1-syntax.sonnx` declares as fact, gathered into one structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from sonnx.spec.language.syntax import Sort

from ..model.graph import Model
from ..model.path import operator_text, quote
from .graphs import functions, graph_tables, operator_tables, ports
from .onnx import onnx_tables
from .onnx import places as onnx_places
from .structure import Element, Structure
from .types import ClaimsSource, value_type_tables

ASKING = frozenset((
    "rank", "dim", "axes",
    "type_name", "ill_typed", "admitted_types", "split_variables", "contradictions", "open_types", "has_type",
    "inference_ran", "objections", "refused", "admitted", "objection",
))  # fmt: skip
"""The facts that ask for the claims of shape inference whatever the model; others do where it says too little."""


def structure(model: Model, claims: ClaimsSource = None) -> Structure:
    """The structure of a model. claims: what shape inference says about its types; without it those stay unknown."""
    providers = {
        **graph_tables(model),
        **operator_tables(model, claims),
        **onnx_tables(model, claims),
        **value_type_tables(model),
    }
    return Structure(providers, _place(model))


def _place(model: Model) -> Callable[[Sort, Element], str]:
    """The path of an element; a function by its name, any other value as it is written."""
    numbered = cache(lambda: ports(model))
    places: Mapping[str, Callable[[Element], str]] = {
        "Graph": lambda g: model.graphs[int(g)].path,
        "Node": lambda n: model.nodes[int(n)].path,
        "Tensor": lambda t: model.tensors[int(t)].path,
        "Port": lambda p: _port(model, *numbered()[int(p)]),
        "Function": lambda f: _function(*functions(model)[int(f)]),
        "Text": lambda text: quote(str(text)),
        **onnx_places(model),
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
