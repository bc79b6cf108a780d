"""Engines written in Python, each in a process of its own: onnx.reference, and any backend by its module."""

from __future__ import annotations

import sys

from .remote import RemoteEngine

_WORKER = "sonnx.semantics.runtimes.engines.python_worker"


def backend(module: str) -> RemoteEngine:
    """The engine of an onnx.backend.base.Backend: a module with `prepare`, or MODULE:CLASS."""
    return RemoteEngine(f"backend:{module}", (sys.executable, "-m", _WORKER, "backend", module))


REFERENCE = RemoteEngine("reference", (sys.executable, "-m", _WORKER, "reference"))
