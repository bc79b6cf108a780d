from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper, parser
from sampling import seeds
from sonnx.checker.runtimes.differential.outcomes import Case, Class, judge_case
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.machine.execution import run as run_model
from sonnx.semantics.model.loader import load
from sonnx.semantics.runtimes.engines.registry import engine

F, D, H = np.float32, np.float64, np.float16
Run = Callable[..., Any]
NAME = "ai.onnx.preview::FlexAttention"
TYPES = {T.FLOAT: F, T.DOUBLE: D, T.FLOAT16: H}


def test_equal_scores_give_the_mean_of_the_values(run: Run) -> None:
    q, k = np.zeros((1, 2, 3, 4), F), np.ones((1, 1, 2, 4), F)
    v = np.array([[[[1, 2, 8], [3, 6, 0]]]], F)
    assert run(NAME, 1, q, k, v).tolist() == [[[[2, 4, 4]] * 3] * 2]


def test_a_great_score_chooses_its_value_and_heads_share_keys_in_order(run: Run) -> None:
    q = np.array([1, 1, -1, -1], F).reshape(1, 4, 1, 1)
    k = np.array([[[0], [200]], [[0], [300]]], F)[None]
    v = np.array([[[1], [2]], [[3], [4]]], F)[None]
    assert run(NAME, 1, q, k, v).reshape(-1).tolist() == [2, 2, 3, 3]
    assert run(NAME, 1, q, k, v, scale=0.0).reshape(-1).tolist() == [1.5, 1.5, 3.5, 3.5]


def test_without_keys_the_sum_is_empty_and_nan_spreads_over_its_query_alone(run: Run) -> None:
    q = np.zeros((1, 1, 2, 3), F)
    assert run(NAME, 1, q, np.zeros((1, 1, 0, 3), F), np.zeros((1, 1, 0, 2), F)).tolist() == [[[[0, 0], [0, 0]]]]
    q[0, 0, 0, 0] = np.nan
    found = run(NAME, 1, q, np.ones((1, 1, 2, 3), F), np.ones((1, 1, 2, 1), F))
    assert np.isnan(found[0, 0, 0]).all()
    assert found[0, 0, 1].tolist() == [1]


def test_what_it_refuses(refused: Run) -> None:
    q, k = np.zeros((1, 3, 1, 2), F), np.zeros((1, 2, 1, 2), F)
    assert "multiple" in refused(NAME, 1, q, k, k)
    assert "multiple" in refused(NAME, 1, q, k[:, :0], k[:, :0])
    assert "scale is not negative" in refused(NAME, 1, q, k[:, :1], k[:, :1], scale=-1.0)
    assert "softmax_precision" in refused(NAME, 1, q, k[:, :1], k[:, :1], softmax_precision=7)


def test_graphs_that_modify_scores_are_refused_in_one_line(tmp_path: Path) -> None:
    graph = parser.parse_graph("m (float[a,b,c,d] s) => (float[a,b,c,d] t) { t = Neg(s) }")
    node = helper.make_node("FlexAttention", ["q", "q", "q"], ["y"], domain="ai.onnx.preview", score_mod=graph)
    shape = [1, 1, 1, 1]
    ends = [helper.make_tensor_value_info(name, T.FLOAT, shape) for name in "qy"]
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("ai.onnx.preview", 1)]
    model = helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=imports, ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(Unsupported, match="FlexAttention-1 with a graph as attribute"):
        run_model(load(tmp_path / "m.onnx"), {"q": np.zeros(shape, F)})


def case(seed: int) -> Case:
    """An application; the same one for the same seed."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    kind = draw.choice(list(TYPES))
    n, groups, shared = draw.choice([1, 2]), draw.choice([1, 2]), draw.choice([1, 3])
    s, keys, e, f = (draw.choice(sizes) for sizes in ([0, 1, 3], [1, 4, 7], [1, 2, 5, 8], [1, 3, 6]))
    shapes = [n, groups * shared, s, e], [n, groups, keys, e], [n, groups, keys, f]
    stated: dict[str, Any] = {}
    if draw.random() < 0.5:
        stated["scale"] = draw.choice([0.0, 0.5, 1.0, 3.0])
    if draw.random() < 0.4:
        stated["softmax_precision"] = draw.choice(
            [T.FLOAT, T.DOUBLE] if kind == T.DOUBLE else [T.FLOAT, T.DOUBLE, kind]
        )
    feeds = {name: rng.normal(0, 1, shape).astype(TYPES[kind]) for name, shape in zip("QKV", shapes, strict=True)}
    if draw.random() < 0.1 and s:
        feeds["Q"].reshape(-1)[0] = draw.choice([np.nan, np.inf, -0.0])
    node = helper.make_node("FlexAttention", ["Q", "K", "V"], ["Y"], domain="ai.onnx.preview", **stated)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in zip("QKV", shapes, strict=True)],
        [helper.make_tensor_value_info("Y", kind, [None] * 4)],
    )
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("ai.onnx.preview", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    return Case(f"FlexAttention/{seed}", model.SerializeToString(), feeds)


@pytest.mark.parametrize("numbers", seeds(240, 4))
def test_the_reference_is_inside_the_bound(numbers: range) -> None:
    found = [judge_case(engine("reference"), case(seed)) for seed in numbers]
    assert not [it for it in found if it.outcome is not Class.PASS]
