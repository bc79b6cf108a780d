"""For which sizes shared models with symbolic sizes are well formed, and that shape inference agrees with the texts."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from sampling import sampled
from sonnx.checker import recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.checker.certification.certifier import certify
from sonnx.checker.rechecker import Outcome
from sonnx.semantics.errors import ModelError

MODELS = Path(__file__).parents[3] / ".." / "shared" / "models"
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
shared = pytest.mark.skipif(not MODELS.is_dir(), reason="the shared models are not at ../shared/models")

SYMBOLIC: dict[str, tuple[str, tuple[str, ...]]] = {
    "latent-errors/decision_tree/network.onnx": ("CONFORMS", ()),
    "latent-errors/gradient_boosted_trees/network.onnx": ("CONFORMS", ()),
    "latent-errors/nanoGPT/network.onnx": ("CONFORMS", ()),  # with an obligation: the input indexes the table of words
    "latent-errors/self_attention/network.onnx": ("CONFORMS", ()),
    "quantized/micro_kws/micro_kws_m_static_qdq.onnx": ("CONFORMS", ()),
    "quantized/qlstm_3-2-3_T3_S1/model.onnx": ("CONFORMS", ()),
    "recurrent/byte_sb_bidi_lstm/model.onnx": ("CONFORMS", ()),  # the input indexes a table of 256 rows
    "safety/KJ_TinyTaxiNet.onnx": ("CONFORMS", ()),  # with obligations: a caller may replace the shape of a Reshape
    "safety/dronet.onnx": ("CONFORMS", ()),
    "safety/traffic-classifier64.onnx": ("CONFORMS", ()),
    "safety/sonnx-wg/flatten.onnx": ("CONFORMS", ("X[0] = 2", "X[1] * X[2] = 12")),
    "safety/sonnx-wg/graph_example_div.onnx": (
        "CONFORMS",
        ("I1[1] = I3[1] or I1[1] = 1 or I3[1] = 1", "I1[0] = I3[0] or I1[0] = 1 or I3[0] = 1"),
    ),
    "safety/sonnx-wg/reshape.onnx": ("CONFORMS", ()),
    "zoo/super_resolution/super_resolution.onnx": ("CONFORMS", ()),
}


@shared
@pytest.mark.parametrize("name", SYMBOLIC)
def test_the_report_says_for_which_sizes_a_shared_model_is_well_formed(name: str) -> None:
    report = certify(MODELS / name, ["domain"], others=False)
    assert report.domain is not None
    assert report.domain.sizes
    assert (report.verdict.value, report.domain.conditions) == SYMBOLIC[name]


OBLIGED = {
    "latent-errors/nanoGPT/network.onnx": 1,
    "recurrent/byte_sb_bidi_lstm/model.onnx": 1,
    "safety/KJ_TinyTaxiNet.onnx": 4,
    "safety/sonnx-wg/unsqueeze.onnx": 2,
    "control-flow/loop.onnx": 2,
    "control-flow/test_loop16_seq_none/model.onnx": 0,
    "control-flow/test_sequence_map_add_2_sequences_expanded/model.onnx": 2,
}


@shared
@pytest.mark.parametrize("name", OBLIGED)
def test_what_data_decide_of_a_shared_model_is_counted(name: str) -> None:
    report = certify(MODELS / name, ["domain"], others=False)
    assert (report.verdict, report.obligations) == ("CONFORMS", OBLIGED[name])


NAMED = {
    "control-flow/nested_local_function.onnx": {"Einsum", "Fake_1", "Fake_2"},
}
"""The operators without a meaning that leave a valid model undecided."""


@shared
@pytest.mark.parametrize("step", [pytest.param(10, id="sample"), pytest.param(1, id="all", marks=pytest.mark.campaign)])
def test_no_valid_shared_model_is_undecided_but_for_named_operators(step: int) -> None:
    """Every tenth model, and those with such operators; all in the campaign."""
    folders = sorted(folder for folder in MODELS.iterdir() if folder.name not in ("invalid", "latent-errors"))
    every = [path for folder in folders for kind in ("*.onnx", "*.pb") for path in sorted(folder.rglob(kind))]
    paths = {*every[::step], *(MODELS / name for name in NAMED)}
    undecided = {}
    for path in paths:
        if "test_data_set" in str(path):
            continue
        report = certify(path, ["domain"], others=False)
        if report.verdict == "UNDECIDED":
            assert report.domain is not None
            undecided[str(path.relative_to(MODELS))] = set(report.domain.without_meaning)
        assert report.verdict != "VIOLATES", path
    assert undecided == NAMED


@shared
@pytest.mark.parametrize("step", [pytest.param(3, id="sample"), pytest.param(1, id="all", marks=pytest.mark.campaign)])
def test_shape_inference_agrees_with_the_texts_on_a_model_of_each_folder(step: int) -> None:
    models = [path for path in sorted(MODELS.rglob("*.onnx")) if "invalid" not in path.parts]
    compared = 0
    for path in [*{path.parent: path for path in models}.values()][::step]:
        try:
            report = certify(path, ["domain"], others=False)
        except ModelError:
            continue
        found = next(rule for rule in report.rules if rule.id == "inference")
        compared += found.places
        assert found.verdict == "holds", (path, found.findings)
    assert compared > 1_500 / step**2


@pytest.mark.parametrize("path", sampled(sorted(LIGHT.glob("*.onnx")), 2), ids=lambda path: path.stem)
def test_the_light_nets_of_the_wheel_are_well_formed(path: Path) -> None:
    report = certify(path, ["domain"], others=False)
    assert [(rule.id, rule.reason) for rule in report.rules if rule.verdict != "holds"] == []
    assert next(rule for rule in report.rules if rule.id == "inference").verdict == "holds"


def test_a_light_resnet_with_a_symbolic_batch_is_well_formed_for_one_image_only(tmp_path: Path) -> None:
    """Its last Reshape has a fixed shape."""
    model = onnx.load(LIGHT / "light_resnet50.onnx")
    image = next(entry for entry in model.graph.input if entry.name == "gpu_0/data_0")
    image.type.tensor_type.shape.dim[0].dim_param = "N"
    del model.graph.output[0].type.tensor_type.shape.dim[0]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    report = certify(model, ["domain"], others=False)
    assert report.domain is not None
    assert report.domain.conditions == ("N = 1",)
    assert [rule.id for rule in report.rules if rule.verdict == "conditional"] == ["Reshape-5/same_element_count"]


@shared
@pytest.mark.parametrize(
    "name",
    [
        "control-flow/loop.onnx",
        "control-flow/test_affine_grid_2d_expanded/model.onnx",
        "control-flow/test_affine_grid_3d_align_corners_expanded/model.onnx",
    ],
)
def test_what_is_said_of_a_shared_model_is_derived_again(name: str) -> None:
    found = recheck(seal(certificate(certify(MODELS / name, witnesses=True))), MODELS / name)
    assert found.outcome is Outcome.CONFIRMED, found.reasons
