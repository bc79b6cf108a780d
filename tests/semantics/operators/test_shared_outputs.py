"""The machine gives the outputs that others stored beside real models, and what is known of those models."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.machine.execution import run
from sonnx.semantics.machine.inputs import declared_inputs
from sonnx.semantics.model.graph import Model, Tensor
from sonnx.semantics.model.loader import load
from sonnx.semantics.runtimes.backend import Exchanged, Prepared
from tables import table

MODELS = Path(__file__).parents[3] / ".." / "shared" / "models"
ABSENT = "" if MODELS.is_dir() else "the shared models are not at ../shared/models"
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)

Array = NDArray[np.generic]


def stored(path: Path, kind: str) -> Exchanged:
    """The value of a data set's file: a tensor, a sequence or an optional."""
    data = path.read_bytes()
    if kind == "sequence_type":
        return list(numpy_helper.to_list(onnx.SequenceProto.FromString(data)))
    if kind == "optional_type":
        return cast("Exchanged", numpy_helper.to_optional(onnx.OptionalProto.FromString(data)))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def kinds(values: Iterable[onnx.ValueInfoProto]) -> list[str]:
    """Whether inputs or outputs of a graph are tensors, sequences or optionals."""
    return [value.type.WhichOneof("value") for value in values]


def data_sets() -> Iterator[tuple[Path, list[Path], list[Path]]]:
    for folder in sorted(MODELS.rglob("test_data_set_*")):
        if "invalid" in folder.parts or "latent-errors" in folder.parts:
            continue
        model = next(iter(sorted(folder.parent.glob("*.onnx"))))
        yield model, *(sorted(folder.glob(f"{kind}_*.pb"), key=_number) for kind in ("input", "output"))


def _number(path: Path) -> int:
    return int(path.stem.rpartition("_")[2])


SETS = list(data_sets()) if MODELS.is_dir() else []


def check(found: Exchanged, expected: Exchanged) -> None:
    """Floats within rtol 1e-3 and atol 1e-5, everything else exactly."""
    if isinstance(expected, list):
        assert isinstance(found, list)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check(one, other)
        return
    one, other = np.asarray(found), np.asarray(expected)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    if one.dtype.kind == "f":
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    else:
        np.testing.assert_array_equal(one, other)


@table(
    ("model", "inputs", "outputs"), SETS, ids=[f"{m.parent.name}-{i[0].parent.name}" for m, i, _ in SETS], absent=ABSENT
)
def test_stored_outputs_are_reproduced(model: Path, inputs: list[Path], outputs: list[Path]) -> None:
    graph = onnx.load(model, load_external_data=False).graph
    given = [stored(path, kind) for path, kind in zip(inputs, kinds(graph.input), strict=False)]
    found = Prepared(load(model)).run(given)
    for value, path, kind in zip(found, outputs, kinds(graph.output), strict=True):
        check(value, stored(path, kind))


@pytest.mark.parametrize("name", ["recurrent/byte_sb_bidi_lstm", "quantized/qlstm_3-2-3_T3_S1"])
def test_stored_arrays_are_reproduced(name: str) -> None:
    arrays = list(np.load(MODELS / name / "io.npz").values())
    try:
        (found,) = Prepared(load(MODELS / name / "model.onnx")).run(arrays[:1])
    except Unsupported as problem:
        pytest.skip(str(problem))
    check(found, arrays[1])


# ---- ACAS Xu ------------------------------------------------------------------------------------


def verdicts() -> list[dict[str, str]]:
    path = MODELS / "acasxu" / "expected_verdicts.tsv"
    return list(csv.DictReader(path.open(), delimiter="\t")) if path.exists() else []


def nets() -> list[str]:
    return sorted(path.stem.removeprefix("N_") for path in (MODELS / "acasxu" / "dnnv").glob("*.onnx"))


def entry(model: Model) -> Tensor:
    """The first input that has no stored value."""
    return next(model.tensors[t] for t, _, needed in declared_inputs(model).values() if needed)


def acas(path: Path, point: Array) -> Array:
    """The output of a net on five numbers, as a flat array."""
    model = load(path)
    tensor = entry(model)
    shape = [
        size if isinstance(size, int) else 1 for size in (tensor.declared.shape if tensor.declared else None) or ()
    ]
    ended = run(model, {tensor.name: point.astype(np.float32).reshape(shape)}, history=False)
    assert ended.stuck is None
    (value,) = ended.outputs.values()
    assert isinstance(value, np.ndarray)
    return value.reshape(-1)


@pytest.mark.parametrize("net", nets() if MODELS.is_dir() else [])
def test_both_forms_of_a_net_give_equal_values(net: str) -> None:
    rng = np.random.default_rng(7)
    gemm = MODELS / "acasxu" / "dnnv" / f"N_{net}.onnx"
    matmul = MODELS / "acasxu" / "marabou" / f"ACASXU_experimental_v2a_{net}.onnx"
    for _ in range(20):
        point = rng.uniform(-0.5, 0.5, 5)
        assert acas(gemm, point).tobytes() == acas(matmul, point).tobytes()


@pytest.mark.parametrize(
    "row", [row for row in verdicts() if row["witness_input"]], ids=lambda row: f"{row['net']}-{row['property']}"
)
def test_the_witnesses_of_the_known_verdicts_are_reproduced(row: dict[str, str]) -> None:
    point, expected = (np.array([float(word) for word in row[f"witness_{key}"].split()]) for key in ("input", "output"))
    found = acas(MODELS / "acasxu" / "marabou" / f"ACASXU_experimental_v2a_{row['net']}.onnx", point)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


# ---- Twin streams -------------------------------------------------------------------------------


TWINS = sorted((MODELS / "safety" / "twin-stream").glob("*.onnx")) if MODELS.is_dir() else []


@pytest.mark.parametrize("path", TWINS, ids=lambda path: path.stem)
def test_a_twin_stream_net_gives_its_constant(path: Path) -> None:
    model = load(path)
    constant = float(path.stem.partition("_width-")[2].partition("_")[0])
    rng = np.random.default_rng(3)
    tensor = entry(model)
    shape = [
        size if isinstance(size, int) else 1 for size in (tensor.declared.shape if tensor.declared else None) or ()
    ]
    for _ in range(20):
        ended = run(model, {tensor.name: rng.uniform(-10, 10, shape)}, history=False)
        assert ended.stuck is None
        (value,) = ended.outputs.values()
        np.testing.assert_allclose(np.asarray(value), constant, rtol=0, atol=1e-13)
