"""The worker that runs onnxruntime. It runs under any Python that has numpy and onnxruntime, and imports nothing else.

Requests: ("open", number, content or path, options), ("run", number, feeds), ("close", number); ("optimize", content or
path, options) for the model that the optimizers make and which of them ran; ("names",) for what the library may call
its rules. Answers: ("ok", what), ("failed", kind, message). Values are as `remote.plain` writes them. Every element
type goes through the bytes of an OrtValue, so that types which the Python interface of onnxruntime has no arrays for
can be run too.

Tensors may lie in a file that both processes map: ("share", descriptor) names it, ("apply", number, feeds) runs with
("placed", element, shape, place, size) among its values, and tells element type, shape and size of each tensor that it
makes, ("take", places) copies these into the file. ("kinds", number) asks for the types of the outputs, ("peak",) for
the peak memory.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import re
import select
import sys
import tempfile
import threading
from contextlib import contextmanager
from importlib import import_module
from mmap import mmap
from typing import Any

if __name__ == "__main__":
    del sys.path[0]  # this folder, whose modules are no runtime's

import numpy as np

NATIVE = {
    "float": "float32", "double": "float64", "float16": "float16", "int8": "int8", "int16": "int16", "int32": "int32",
    "int64": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool",
    "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
ELEMENTS = {np.dtype(name): element for element, name in NATIVE.items()}
CODES = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "double": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
    "float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20, "uint4": 21, "int4": 22,
    "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 26,
}  # fmt: skip
"""The numbers of the element types (onnx.proto, TensorProto.DataType)."""
NAMES = {code: name for name, code in CODES.items()}
BITS = {"uint4": 4, "int4": 4, "float4e2m1": 4, "uint2": 2, "int2": 2, "bfloat16": 16}
LEVELS = {
    "disabled": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}  # fmt: skip


class Refused(Exception):  # noqa: N818 - it is an answer
    """Nothing comes of a request, and why."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


# ---- Values -----------------------------------------------------------------------------------


def array(value: Any) -> Any:
    """A tensor of a type that NumPy has as an array, a sequence as a list, an optional as None or its item,
    a map as a dictionary of numbers or texts."""
    if value is None:
        return None
    kind = value[0]
    if kind == "tensor":
        _, element, shape, content = value
        if element == "string":
            made = np.empty(len(content), object)
            made[:] = [text.decode("utf-8", "surrogateescape") for text in content]
            return made.reshape(shape)
        if element not in NATIVE:
            raise Refused("binding", f"no array of {element} can be given inside a sequence or an optional")
        return np.frombuffer(content, NATIVE[element]).reshape(shape).copy()
    if kind == "sequence":
        return [array(item) for item in value[1]]
    if kind == "optional":
        return array(value[1])
    if kind == "map":
        names = [k.decode("utf-8", "surrogateescape") if isinstance(k, bytes) else k for k, _ in value[2]]
        return dict(zip(names, [array(item).reshape(-1)[0] for _, item in value[2]]))  # noqa: B905 - any Python
    raise Refused("binding", f"a {kind} cannot be given")


def ort_value(ort: Any, value: Any) -> Any:
    """A tensor as an OrtValue."""
    _, element, shape, content = value
    if element in NATIVE or element == "string":
        return ort.OrtValue.ortvalue_from_numpy(array(value))
    return raw_value(ort, element, shape, content)


def raw_value(ort: Any, element: str, shape: Any, content: Any) -> Any:
    """A tensor as an OrtValue, of a type that NumPy may lack. content: its bytes."""
    inner = ort.capi.onnxruntime_pybind11_state.OrtValue
    device = ort.capi.onnxruntime_pybind11_state.OrtDevice
    place = device(device.cpu(), device.default_memory(), 0)
    made = ort.OrtValue(inner.ortvalue_from_shape_and_onnx_type(shape, CODES[element], place))
    if content:
        ctypes.memmove(made.data_ptr(), content, len(content))
    return made


def plain(value: Any, kind: str = "") -> Any:
    """Results of onnxruntime as plain data. kind: their type as it spells it; values of a map are numbers of Python."""
    if value is None:
        return ("optional", None)
    if isinstance(value, (list, tuple)):
        return ("sequence", [plain(item, kind) for item in value])
    if isinstance(value, dict):
        told = re.search(r"map\((\w+), *tensor\((\w+)\)\)", kind)
        key = told.group(1) if told else "string" if any(isinstance(k, str) for k in value) else "int64"
        dtype = NATIVE.get(told.group(2)) if told else None
        held = [(k, v if dtype is None else np.asarray(v, dtype)) for k, v in value.items()]
        return ("map", key, [(k.encode() if isinstance(k, str) else int(k), plain(v)) for k, v in held])
    made = np.asarray(value)
    if made.dtype.kind in "OU":
        texts = [text.encode("utf-8", "surrogateescape") for text in made.reshape(-1).tolist()]
        return ("tensor", "string", list(made.shape), texts)
    if made.dtype not in ELEMENTS:
        raise Refused("binding", f"an output has the dtype {made.dtype}")
    return ("tensor", ELEMENTS[made.dtype], list(made.shape), made.tobytes())


def plain_ort(value: Any) -> Any:
    """An OrtValue that is a tensor as plain data."""
    element = NAMES.get(value.element_type(), "")
    if element in NATIVE or element == "string":
        return plain(value.numpy())
    shape, size = list(value.shape()), size_of(value)
    return ("tensor", element, shape, ctypes.string_at(value.data_ptr(), size) if size else b"")


def size_of(value: Any) -> int:
    """The bytes of an OrtValue that is a tensor of numbers."""
    element = NAMES.get(value.element_type(), "")
    bits = 8 * np.dtype(NATIVE[element]).itemsize if element in NATIVE else BITS.get(element, 8)
    count = 1
    for size in value.shape():
        count *= size
    return (count * bits + 7) // 8


# ---- Sessions ---------------------------------------------------------------------------------


def kind_of(error: Exception) -> str:
    """Why a model is declined."""
    text, name = str(error), type(error).__name__
    skew = ("Unsupported model IR version", "is under development", "is not supported by this version", "till opset")
    if any(words in text for words in skew):
        return "version skew"
    unknown = "is not a registered function/op", "No Op registered for", "Could not find an implementation"
    if name == "NotImplemented" or any(words in text for words in (*unknown, "not currently registered")):
        return "unsupported"
    return "invalid"


def session_options(ort: Any, options: dict[str, str]) -> Any:
    """Options of onnxruntime: the level of optimization, the number of threads; nothing is logged."""
    chosen = ort.SessionOptions()
    chosen.log_severity_level = 4
    chosen.intra_op_num_threads = int(options.get("threads", "1"))
    chosen.inter_op_num_threads = 1
    chosen.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[options.get("optimize", "all")])
    return chosen


def open_session(ort: Any, content: Any, options: dict[str, str], chosen: Any = None) -> Any:
    """A session on the CPU, without fallback, and without the optimizers that the option `off` names."""
    chosen = session_options(ort, options) if chosen is None else chosen
    off = {"disabled_optimizers": options["off"].split()} if options.get("off") else {}
    try:
        session = ort.InferenceSession(content, chosen, providers=["CPUExecutionProvider"], enable_fallback=0, **off)
    except Exception as error:
        raise Refused(kind_of(error), f"{type(error).__name__}: {error}") from None
    if session.get_providers() != ["CPUExecutionProvider"]:
        raise Refused("error", f"the session runs on {session.get_providers()}")
    return session


def run_session(ort: Any, session: Any, feeds: list[Any]) -> list[Any]:
    """The outputs by name."""
    stated = [(it.name, it.type) for it in session.get_outputs()]
    tensors = all(value[0] == "tensor" and value[1] != "string" for _, value in feeds) and gives_tensors(session)
    try:
        if tensors:
            given = {name: ort_value(ort, value) for name, value in feeds}
        else:
            given = {name: array(value) for name, value in feeds}
    except Refused:
        raise
    except Exception as error:
        raise Refused("binding", f"{type(error).__name__}: {error}") from None
    results = executed(lambda: session.run_with_ort_values(None, given) if tensors else session.run(None, given))
    paired = zip(stated, results)  # noqa: B905 - any Python
    return [(name, plain_ort(it) if tensors else plain(it, kind)) for (name, kind), it in paired]


def gives_tensors(session: Any) -> bool:
    """True where all outputs of a session are tensors."""
    return all(it.type.startswith("tensor(") for it in session.get_outputs())


def executed(call: Any) -> Any:
    """What a call of onnxruntime gives. Raises Refused, with the kind, where it fails."""
    try:
        return call()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        bound = re.search(
            r"Unable to (handle|convert)|No corresponding Numpy type|not a supported|Unexpected input", text
        )
        unsupported = type(error).__name__ == "NotImplemented" or "NOT_IMPLEMENTED" in text
        raise Refused("binding" if bound else "unsupported" if unsupported else "error", text) from None


def number_values(ort: Any, session: Any, given: dict[str, Any]) -> list[Any]:
    """The outputs of a session, whose outputs are all tensors, as OrtValues."""
    results: list[Any] = executed(lambda: session.run_with_ort_values(None, given))
    return results


class Space:
    """A file that the parent maps too, and the results that wait to be copied there."""

    def __init__(self) -> None:
        self.file = -1
        self.memory: Any = b""
        self.waiting: list[Any] = []

    def address(self, place: int, size: int) -> int:
        """The address of bytes of the file, which grows."""
        if place + size > len(self.memory):
            self.memory = mmap(self.file, os.fstat(self.file).st_size)
        return ctypes.addressof(ctypes.c_char.from_buffer(self.memory, place))

    def given(self, ort: Any, value: Any) -> Any:
        """A value of a request as an OrtValue; one that lies in the file is read there where it can be."""
        if value[0] != "placed":
            return ort_value(ort, value)
        _, element, shape, place, size = value
        if element in NATIVE:
            self.address(place, size)
            count = size // np.dtype(NATIVE[element]).itemsize
            return ort.OrtValue.ortvalue_from_numpy(
                np.frombuffer(self.memory, NATIVE[element], count, place).reshape(shape)
            )
        return raw_value(ort, element, shape, ctypes.string_at(self.address(place, size), size))

    def apply(self, ort: Any, session: Any, feeds: list[Any]) -> list[Any]:
        """What is to be told of the outputs, which are all tensors: those that the file can hold as they are wait."""
        self.waiting = []
        results = number_values(ort, session, {name: self.given(ort, value) for name, value in feeds})
        told: list[Any] = []
        for it in results:
            element = NAMES.get(it.element_type(), "")
            if element == "string" or BITS.get(element, 8) < 8:
                told.append(plain_ort(it))
            else:
                told.append(("made", element, list(it.shape()), size_of(it)))
                self.waiting.append(it)
        return told

    def take(self, places: list[int]) -> None:
        """Copies the results that wait."""
        for it, place in zip(self.waiting, places):  # noqa: B905 - any Python
            size = size_of(it)
            if size:
                ctypes.memmove(self.address(place, size), it.data_ptr(), size)
        self.waiting = []


def peak() -> int:
    """The peak memory of this process in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


# ---- Optimizers -------------------------------------------------------------------------------


PASSES = re.compile(
    r"Applying \d+ graph transformer\(s\) for level (\d+)|Applying graph transformer (\S+) on step"
    r"|GraphTransformer (\S+) modified: (\d)"
)
"""What the log of a session says of optimizers."""
NAME = re.compile(rb"(?<=\0)[A-Z][A-Za-z0-9_]{3,60}(?=\0)")


@contextmanager
def captured(said: list[str]) -> Any:
    """What is written to standard error meanwhile, by libraries too."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        said.append(file.read().decode("utf-8", "replace"))


def optimize(ort: Any, content: Any, options: dict[str, str]) -> Any:
    """The model that the optimizers make, None where there is none, the optimizers that ran as (level, name, whether it
    changed the model), in the order of their first turn, and as (kind, message) why there is no session, or None."""
    chosen, failed = session_options(ort, options), None
    said: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "optimized.onnx")  # noqa: PTH118 - as the library takes it
        chosen.optimized_model_filepath = target
        chosen.log_severity_level = 0
        with captured(said):
            try:
                open_session(ort, content, options, chosen)
            except Refused as refused:
                failed = (refused.kind, str(refused))
        made = None
        if os.path.exists(target):  # noqa: PTH110
            with open(target, "rb") as file:  # noqa: PTH123
                made = file.read()
    return made, passes(said[0]), failed


def passes(log: str) -> list[Any]:
    """The optimizers of a log. One that began and did not end is where it all ended, and counts as a change."""
    level, open_ = 0, ""
    known: dict[str, tuple[int, bool]] = {}
    for at, begun, ended, changed in PASSES.findall(log):
        level = int(at) if at else level
        open_ = begun or ("" if ended else open_)
        if begun or ended:
            first, before = known.get(begun or ended, (level, False))
            known[begun or ended] = (first, before or changed == "1")
    return [(at, name, changed or name == open_) for name, (at, changed) in known.items()]


def names(ort: Any) -> list[str]:
    """What may be the name of a rule: the identifiers among the texts of the library, and what they end in, since a
    linker keeps one text for two of which one ends in the other."""
    with open(ort.capi.onnxruntime_pybind11_state.__file__, "rb") as file:  # noqa: PTH123
        whole = {text.decode() for text in NAME.findall(file.read())}
    ends = {text[at.start() :] for text in whole for at in re.finditer("(?<=[a-z0-9_])[A-Z]", text)}
    return sorted(whole | ends)


# ---- Requests ---------------------------------------------------------------------------------


def claimed_output() -> Any:
    """Standard output for answers alone: what libraries print goes to standard error."""
    wire = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return wire


def leave_with_parent() -> None:
    """Ends this process in the middle of a request when nobody is left who could ask: the parent was killed, say."""
    poll = select.poll()
    poll.register(sys.stdin.fileno(), 0)  # the end of the other side is always told
    poll.poll()
    os._exit(1)


def serve(wire: Any, version: str, respond: Any) -> None:
    """Tells the version, then answers requests while somebody may ask. respond: gives the payload, raises Refused."""
    if hasattr(select, "poll"):
        threading.Thread(target=leave_with_parent, daemon=True).start()

    def answer(what: Any) -> None:
        pickle.dump(what, wire, protocol=4)
        wire.flush()

    answer(version)
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer(("ok", respond(request)))
        except Refused as refused:
            answer(("failed", refused.kind, str(refused)))
        except Exception as error:
            answer(("failed", "error", f"{type(error).__name__}: {error}"))


def main() -> None:
    """Runs onnxruntime for whoever asks on standard input."""
    wire = claimed_output()
    ort: Any = import_module("onnxruntime")
    ort.set_default_logger_severity(4)
    sessions: dict[int, Any] = {}
    space = Space()

    def respond(request: Any) -> Any:
        if request[0] == "open":
            sessions[request[1]] = open_session(ort, request[2], dict(request[3]))
        elif request[0] == "run":
            return run_session(ort, sessions[request[1]], request[2])
        elif request[0] == "share":
            space.file = request[1]
        elif request[0] == "apply":
            return space.apply(ort, sessions[request[1]], request[2])
        elif request[0] == "take":
            space.take(request[1])
        elif request[0] == "kinds":
            return [it.type for it in sessions[request[1]].get_outputs()]
        elif request[0] == "peak":
            return peak()
        elif request[0] == "optimize":
            return optimize(ort, request[1], dict(request[2]))
        elif request[0] == "names":
            return names(ort)
        else:
            sessions.pop(request[1], None)
        return None

    serve(wire, str(ort.__version__), respond)


if __name__ == "__main__":
    main()
