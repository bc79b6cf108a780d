"""The worker that runs what is written in Python: onnx.reference, or a module with the functions of a backend.

`python -m sonnx.semantics.runtimes.engines.python_worker reference`, or `backend MODULE`. Requests and answers are
those of `onnxruntime_worker`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import onnx

from ...errors import ModelError, Unsupported
from ...machine.memory import type_of
from ...model.type_protos import from_proto
from ..backend import exchanged, received
from .onnxruntime_worker import Refused, claimed_output, serve
from .protocol import Kind
from .remote import Plain, plain, valued

Execute = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Outputs by name from inputs by name, as ONNX's Python interfaces exchange them."""


def reference(proto: onnx.ModelProto) -> Execute:
    """onnx.reference. Raises Refused."""
    from onnx.reference import ReferenceEvaluator

    try:
        evaluator = ReferenceEvaluator(proto)
    except Exception as error:
        raise Refused(_declined(error), f"{type(error).__name__}: {error}") from None
    names = [it.name for it in proto.graph.output]

    def run(feeds: Mapping[str, Any]) -> Mapping[str, Any]:
        return dict(zip(names, evaluator.run(None, dict(feeds)), strict=True))

    return run


def backend(module: str) -> Callable[[onnx.ModelProto], Execute]:
    """A backend by the name of its module, which has `prepare`, or a class `module:Class` that has."""
    name, _, inner = module.partition(":")
    target: Any = import_module(name)
    if inner:
        target = getattr(target, inner)

    def opened(proto: onnx.ModelProto) -> Execute:
        try:
            prepared = target.prepare(proto, "CPU")
        except Exception as error:
            raise Refused(_declined(error), f"{type(error).__name__}: {error}") from None
        names = [it.name for it in proto.graph.output]
        inputs = [it.name for it in proto.graph.input]

        def run(feeds: Mapping[str, Any]) -> Mapping[str, Any]:
            given = [feeds[name] for name in inputs if name in feeds]
            return dict(zip(names, prepared.run(given), strict=True))

        return run

    return opened


def _declined(error: Exception) -> Kind:
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, NotImplementedError) or "NotImplemented" in text or "No registered implementation" in text:
        return Kind.UNSUPPORTED
    return Kind.INVALID


class Sessions:
    """The models that are open, by number."""

    def __init__(self, make: Callable[[onnx.ModelProto], Execute]) -> None:
        self.make = make
        self.open: dict[int, tuple[Execute, Mapping[str, Any], Mapping[str, Any]]] = {}

    def answer(self, request: Any) -> Plain:
        """The answer to a request. Raises Refused, and whatever the runtime raises."""
        match request:
            case ("open", int(number), content, _):
                proto = onnx.load(content) if isinstance(content, str) else onnx.ModelProto.FromString(content)
                given, stated = (
                    {it.name: from_proto(it.type) for it in ports if it.HasField("type")}
                    for ports in (proto.graph.input, proto.graph.output)
                )
                self.open[number] = (self.make(proto), given, stated)
                return None
            case ("run", int(number), feeds):
                run, inputs, outputs = self.open[number]
                values = {name: exchanged(valued(data, inputs.get(name))) for name, data in feeds}
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    results = run(values)
                return [(name, _plain(name, it, outputs.get(name))) for name, it in results.items()]
            case ("close", int(number)):
                self.open.pop(number, None)
                return None
            case _:
                raise Refused(Kind.ERROR, "no such request")


def _plain(name: str, result: Any, declared: Any) -> Plain:
    """Results of a runtime as plain data. A scalar of Python is no array; it is taken as one of its own dtype."""
    try:
        value = received(result, declared)
        type_of(value)
        return plain(value)
    except Exception as error:
        raise Refused(Kind.BINDING, f"the output {name!r} is no value: {type(error).__name__}: {error}") from None


def main() -> None:
    """Answers requests until there are no more."""
    wire = claimed_output()
    sys.stdout = sys.stderr
    if sys.argv[1] == "reference":
        sessions, version = Sessions(reference), str(onnx.__version__)
    else:
        sessions, version = Sessions(backend(sys.argv[2])), ""
        version = str(getattr(import_module(sys.argv[2].partition(":")[0]), "__version__", ""))

    def respond(request: Any) -> Plain:
        try:
            return sessions.answer(request)
        except (Unsupported, NotImplementedError) as error:
            raise Refused(Kind.UNSUPPORTED.value, f"{type(error).__name__}: {error}") from None
        except ModelError as error:
            raise Refused(Kind.INVALID.value, str(error)) from None

    serve(wire, version, respond)


if __name__ == "__main__":
    main()
