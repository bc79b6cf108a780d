"""Shape inference by processes forked from one that has onnx loaded: what a new process does, without its start.

Most of the time that a small model takes to be certified is the start of the process that asks ONNX. `warm()` puts a
server between: it imports the worker once and forks for each request, so that memory limits and crashes stay those of a
process of its own.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType, SimpleNamespace
from typing import IO
from unittest.mock import patch

SERVER = """
import gc, importlib, io, os, resource, signal, struct, sys, tempfile, traceback
import onnx.parser, onnx.shape_inference
worker = importlib.import_module(sys.argv[1])
gc.collect()
gc.freeze()
onnx.shape_inference.infer_shapes(onnx.parser.parse_model(sys.argv[2]))
source, sink = sys.stdin.buffer, sys.stdout.buffer
while head := source.read(16):
    seconds, size = struct.unpack("<dq", head)
    request = source.read(size)
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    child = os.fork()
    if not child:
        os.dup2(err.fileno(), 2)
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
        sys.stdin = io.TextIOWrapper(io.BytesIO(request))
        sys.stdout = io.TextIOWrapper(io.FileIO(out.fileno(), "w", closefd=False))
        try:
            worker.main()
            sys.stdout.flush()
        except BaseException:
            os.write(2, traceback.format_exc().encode())
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for file in (out, err):
        file.seek(0)
        texts.append(file.read())
        file.close()
    sink.write(struct.pack("<qqq", code, *map(len, texts)) + b"".join(texts))
    sink.flush()
"""
SMALL = '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
"""A model that the server infers before it forks: the first inference of a process makes the table of all schemas."""
ALARM = -14
WORKER = "sonnx.semantics.facts.inference.worker"
RECHECKERS_WORKER = "sonnx.checker.rechecker.inference_worker"


class Server:
    """One server for one worker module, started when it is first asked."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.process: subprocess.Popen[bytes] | None = None

    def run(
        self, command: list[str], *, input: bytes, timeout: float, **_: object
    ) -> subprocess.CompletedProcess[bytes]:
        if self.process is None or self.process.poll() is not None:
            started = [sys.executable, "-P", "-c", SERVER, self.module, SMALL]
            self.process = subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        source, sink = self.process.stdout, self.process.stdin
        sink.write(struct.pack("<dq", timeout, len(input)) + input)
        sink.flush()
        code, *sizes = struct.unpack("<qqq", _exactly(source, 24))
        out, err = (_exactly(source, size) for size in sizes)
        if code == ALARM:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, code, out, err)

    def close(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def _exactly(source: IO[bytes], size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise EOFError("the server of shape inference is gone")
    return data


@contextmanager
def warm(*asking: tuple[ModuleType, str]) -> Iterator[None]:
    """For each module that starts a worker: the worker is asked through a server from here on."""
    servers = [(module, Server(worker)) for module, worker in asking]
    try:
        with asked(*servers):
            yield
    finally:
        for _, server in servers:
            server.close()


@contextmanager
def asked(*servers: tuple[ModuleType, Server]) -> Iterator[None]:
    """The same with servers that are there, and that go on."""
    with ExitStack() as patches:
        for module, server in servers:
            stand_in = SimpleNamespace(**{**vars(subprocess), "run": server.run})
            patches.enter_context(patch.object(module, "subprocess", stand_in))
        yield
