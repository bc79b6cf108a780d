"""The collected invalid models: each loads or ends in one line, and nothing outside its folder is read."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sampling import sampled
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load
from tables import table

INVALID = (Path(__file__).parents[4] / ".." / "shared" / "models").resolve() / "invalid"
EXTERNAL = INVALID / "onnx-tests" / "external_data"
PATHS = sorted(INVALID.rglob("*.onnx"))
LIMITS = {"memory": 2**30, "seconds": 10}

ABSENT = "" if INVALID.is_dir() else "the shared models are not at ../shared/models"
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)


@table("path", PATHS, ids=lambda path: "/".join(path.relative_to(INVALID).parts[1:])[:90], absent=ABSENT)
def test_an_invalid_model_loads_or_ends_in_one_line(path: Path) -> None:
    try:
        assert isinstance(load(path), Model)
    except ModelError as error:
        assert str(error).isascii()
        assert str(error).isprintable()


@pytest.mark.parametrize("path", sorted(EXTERNAL.rglob("*.onnx")), ids=lambda path: path.stem[:60])
def test_every_attack_on_external_data_is_refused_and_nothing_outside_is_opened(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    real: Callable[..., int] = os.open

    def recorded(name: str | bytes | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        names.append(os.fsdecode(name))
        return real(name, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", recorded)
    monkeypatch.setattr(os, "supports_dir_fd", {recorded})
    with pytest.raises(ModelError):
        load(path)
    assert names, "the model file itself"
    for name in names:
        assert Path(os.path.normpath(path.parent / name)).is_relative_to(path.parent)


@pytest.mark.parametrize(
    "name",
    sampled([
        "lfs-pointer/mnist-1.onnx",
        "onnx-tests/function_cycles/test_check_model_rejects_deeply_nested_cycle.onnx",
        "onnx-tests/shape_type/test_col2im_block_shape_overflow_18.onnx",
        "onnx-tests/tensor/test_check_tensor_invalid_dims__2.onnx",
        "onnx-tests/external_data/tensor_attrs/test_length_exceeds_available_data_raises.onnx",
    ], 2),
)  # fmt: skip
def test_a_representative_one_stays_within_time_and_memory(name: str) -> None:
    program = (
        "import sys\n"
        "from sonnx.semantics.errors import ModelError\n"
        "from sonnx.semantics.model.loader import load\n"
        "try:\n"
        "    load(sys.argv[1])\n"
        "except ModelError:\n"
        "    pass\n"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (LIMITS["memory"], LIMITS["memory"]))
        resource.setrlimit(resource.RLIMIT_CPU, (LIMITS["seconds"], LIMITS["seconds"]))

    done = subprocess.run(
        [sys.executable, "-c", program, str(INVALID / name)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
        timeout=60,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
