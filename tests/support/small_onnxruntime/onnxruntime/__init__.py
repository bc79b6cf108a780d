"""A stand-in for onnxruntime with a few operators on floats, which goes wrong where the data say so.

A Neg whose first number is a key of FAULTS does what stands there. No session holds both a Sin and a Cos, and a Tan is
taken for an unknown operator.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx

__version__ = "0.1"
GraphOptimizationLevel = Enum("GraphOptimizationLevel", ["ORT_ENABLE_ALL", "ORT_DISABLE_ALL"])
CODES = {np.dtype("float32"): 1, np.dtype("float64"): 11, np.dtype("int64"): 7}


Refusal = type("NotImplemented", (Exception,), {})


class SessionOptions:
    def add_session_config_entry(self, *_: str) -> None: ...


def set_default_logger_severity(_: int) -> None: ...


class OrtValue:
    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array, order="C")

    @staticmethod
    def ortvalue_from_numpy(array: Any) -> OrtValue:
        return OrtValue(array)

    def element_type(self) -> int:
        return CODES[self.array.dtype]

    def shape(self) -> list[int]:
        return list(self.array.shape)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def numpy(self) -> Any:
        return self.array


def ended(number: int) -> Any:
    os.kill(os.getpid(), number)
    time.sleep(30)


def cried() -> Any:
    sys.stderr.write("free(): invalid pointer\n")
    sys.stderr.flush()
    os.abort()


def failed() -> Any:
    raise RuntimeError("[ONNXRuntimeError] : 6 :\nRUNTIME_EXCEPTION")


FAULTS = {
    1001: lambda x: ended(signal.SIGSEGV),
    1002: lambda x: cried(),
    1003: lambda x: time.sleep(600),
    1004: lambda x: x.astype(np.float64),
    1005: lambda x: x[:, :1],
    1007: lambda x: failed(),
}


def negated(x: Any) -> Any:
    fault = FAULTS.get(int(x.flat[0]) if x.size else 0)
    return -x if fault is None else fault(x)


OPERATORS = {
    "Neg": negated, "Relu": lambda x: np.maximum(x, 0), "MatMul": np.matmul, "Add": np.add, "Mul": np.multiply,
    "Sin": np.sin, "Cos": np.cos,
}  # fmt: skip


class InferenceSession:
    def __init__(self, content: bytes, options: SessionOptions, **_: Any) -> None:
        self.graph = onnx.ModelProto.FromString(content).graph
        for node in self.graph.node:
            if node.op_type not in OPERATORS:
                raise Refusal(f"[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : no kernel for {node.op_type}")
        if {"Sin", "Cos"} <= {node.op_type for node in self.graph.node}:
            raise Refusal("no Sin beside a Cos")

    def get_providers(self) -> list[str]:
        return ["CPUExecutionProvider"]

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name=it.name, type="tensor(float)") for it in self.graph.output]

    def run_with_ort_values(self, _: object, given: dict[str, OrtValue]) -> list[OrtValue]:
        values = {it.name: onnx.numpy_helper.to_array(it) for it in self.graph.initializer}
        values |= {name: it.array for name, it in given.items()}
        for node in self.graph.node:
            values[node.output[0]] = OPERATORS[node.op_type](*(values[name] for name in node.input))
        return [OrtValue(values[it.name]) for it in self.graph.output]
