"""Invalid models made by others end as ModelError (exit 2), VIOLATES (1) or UNDECIDED (3): fast, in little memory."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

SHARED = (Path(__file__).parents[3] / ".." / "shared" / "models").resolve()
INVALID = SHARED / "invalid"
SUPPORT = Path(__file__).parents[2] / "support"

pytestmark = pytest.mark.skipif(not INVALID.is_dir(), reason="the shared models are not at ../shared/models")

MODELS = sorted(str(p.relative_to(SHARED)) for p in INVALID.rglob("*.onnx") if p.is_file())
SAMPLE, BATCH = 5, 50
BATCHES = [
    pytest.param(random.Random(1).sample(MODELS, min(SAMPLE, len(MODELS))), id="sample"),
    *(
        pytest.param(MODELS[first : first + BATCH], id=f"from {first}", marks=pytest.mark.campaign)
        for first in range(0, len(MODELS), BATCH)
    ),
]

VALID_AFTER_ALL = {
    "invalid/onnx-tests/shape_type/test_function_output_count_mismatch_does_not_crash.onnx": (
        "the call names one of the two outputs of a model-local function;"
        " no rule of ONNX forbids to leave an output of a call unused"
    )
}
"""Models of the folder that conform to ONNX, each with the reason."""

WORKER = """
import contextlib, io, json, resource, sys, time
from sonnx.semantics.facts.inference import model as claims
from sonnx.semantics.runtimes.benchmark_worker import peak
from sonnx.spec.cli import run
sys.path.append(sys.argv[1])
from warm_inference import WORKER, warm
with warm((claims, WORKER)):
    for name in sys.argv[3:]:
        out, err, start = io.StringIO(), io.StringIO(), time.process_time()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(["certify", f"{sys.argv[2]}/{name}"])
        record = {"code": code, "out": out.getvalue(), "err": err.getvalue(), "seconds": time.process_time() - start}
        print(json.dumps({"name": name, **record}))
print(peak() / 2**20 + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10)
"""


@pytest.mark.parametrize("batch", BATCHES)
def test_invalid_models_never_conform(batch: list[str], tmp_path: Path) -> None:
    """A sample of the models, and all in the campaign. A batch is one process, so the peak of memory is one of all of
    them, and of what it has forked."""
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(SUPPORT), str(SHARED), *batch],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    *lines, megabytes = done.stdout.splitlines()
    records = [json.loads(line) for line in lines]
    assert float(megabytes) < 512
    assert [record["name"] for record in records] == batch
    for record in records:
        assert record["code"] in (1, 2, 3) or (record["code"] == 0 and record["name"] in VALID_AFTER_ALL), record
        assert "Traceback" not in record["err"], record
        assert record["seconds"] < 10, record
        if record["code"] == 2:
            assert (record["out"], len(record["err"].splitlines())) == ("", 1), record
    assert list(tmp_path.iterdir()) == []
