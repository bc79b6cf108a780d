"""Invalid models made by others end as ModelError (exit 2), VIOLATES (1) or UNDECIDED (3), quickly and in little memory."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / ".." / "shared" / "models"
INVALID = SHARED / "invalid"

pytestmark = pytest.mark.skipif(not INVALID.is_dir(), reason="the shared models are not at ../shared/models")

MODELS = sorted(str(p.relative_to(SHARED)) for p in INVALID.rglob("*.onnx") if p.is_file())

VALID_AFTER_ALL = {
    "invalid/onnx-tests/shape_type/test_function_output_count_mismatch_does_not_crash.onnx": "the call names one of the "
    "two outputs of a model-local function; no rule of ONNX forbids to leave an output of a call unused"
}
"""Models of the folder that conform to ONNX, each with the reason."""

COMMAND = [sys.executable, "-c", "from sonnx.spec.cli import main; main()", "certify", "--rules", "onnx", "--no-others"]


@pytest.mark.parametrize("name", MODELS)
def test_an_invalid_model_never_conforms(name: str, tmp_path: Path) -> None:
    start = time.monotonic()
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen([*COMMAND, str((SHARED / name).resolve())], stdout=out, stderr=err, cwd=tmp_path)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    error = (tmp_path / "err").read_text(errors="replace")
    text = (tmp_path / "out").read_text(errors="replace")
    assert "Traceback" not in error
    assert process.returncode in (1, 2, 3) or name in VALID_AFTER_ALL, text
    if process.returncode == 2:
        assert len(error.strip().splitlines()) == 1, error
        assert text == ""
    assert usage.ru_maxrss / 1024 < 1024
    assert time.monotonic() - start < 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["err", "out"]
