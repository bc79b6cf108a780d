"""Tools that rewrite models, run by an interpreter that has them: knows nothing of this project.

`INTERPRETER tool_outcomes.py TOOL FOLDER...` lets a tool rewrite `model.onnx` of each folder and runs the result on
`feeds.npz`, with onnxruntime without optimizers, each in a process of its own; writes `TOOL.npz` beside it, or
`TOOL.txt`: the class of the exception, the stage that fails, and how. Prints the version of the tool. The tool
`onnxruntime` is its default session, `nothing` leaves the model as it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
import onnxruntime


def _same(model: onnx.ModelProto) -> onnx.ModelProto:
    return model


def _optimizer() -> Callable[[onnx.ModelProto], onnx.ModelProto]:
    import onnxoptimizer

    passes = onnxoptimizer.get_fuse_and_elimination_passes()
    return lambda model: onnxoptimizer.optimize(model, passes)


def _simplifier() -> Callable[[onnx.ModelProto], onnx.ModelProto]:
    import onnxsim

    return lambda model: onnxsim.simplify(model)[0]


def _slim() -> Callable[[onnx.ModelProto], onnx.ModelProto]:
    import onnxslim

    return lambda model: onnxslim.slim(model)


def _script() -> Callable[[onnx.ModelProto], onnx.ModelProto]:
    from onnxscript import optimizer, rewriter

    return lambda model: rewriter.rewrite(optimizer.optimize(model))


TOOLS: dict[str, Callable[[], Callable[[onnx.ModelProto], onnx.ModelProto]]] = {
    "nothing": lambda: _same,
    "onnxruntime": lambda: _same,
    "onnxoptimizer": _optimizer,
    "onnxsim": _simplifier,
    "onnxslim": _slim,
    "onnxscript": _script,
}


def _outcome(tool: str, rewrite: Callable[[onnx.ModelProto], onnx.ModelProto], folder: Path) -> None:
    stage = "tool"
    try:
        model = rewrite(onnx.load(folder / "model.onnx"))
        stage = "session"
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        if tool != "onnxruntime":
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        stage = "run"
        with np.load(folder / "feeds.npz") as feeds:
            given = {it.name: feeds[it.name] for it in session.get_inputs()}
        names = [it.name for it in session.get_outputs()]
        np.savez(folder / f"{tool}.npz", **dict(zip(names, session.run(names, given), strict=True)))
    except Exception as error:
        told = f"{type(error).__name__}: {stage}: {error}"
        (folder / f"{tool}.txt").write_text(told.splitlines()[0], encoding="utf-8")


def main(tool: str, folders: list[str]) -> None:
    rewrite = TOOLS[tool]()
    for folder in folders:
        child = os.fork()
        if not child:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            _outcome(tool, rewrite, Path(folder))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            (Path(folder) / f"{tool}.txt").write_text(f"crash: status {status}", encoding="utf-8")
    print(version("onnxruntime" if tool == "nothing" else tool))  # noqa: T201 - the answer of the script


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
