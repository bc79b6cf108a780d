"""onnxruntime on the CPU, as shipped and with its optimisations off, in a process of its own.

It is that of this interpreter (extra `ort`), or of the one that SONNX_ONNXRUNTIME names, which needs nothing of ours.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from .remote import RemoteEngine


def onnxruntime(name: str, level: str, threads: int = 1) -> RemoteEngine:
    """An engine with an optimisation level, all or disabled."""
    named = os.environ.get("SONNX_ONNXRUNTIME")
    there = bool(named) or find_spec("onnxruntime") is not None
    missing = "" if there else "onnxruntime is not installed: install sonnx[ort], or set SONNX_ONNXRUNTIME to a Python"
    command = (named or sys.executable, str(Path(__file__).with_name("onnxruntime_worker.py")))
    return RemoteEngine(name, command, (("optimize", level), ("threads", str(threads))), missing=missing)


OPTIMIZED = onnxruntime("onnxruntime", "all")
DISABLED = onnxruntime("onnxruntime-disabled", "disabled")
