"""What `optimize` makes of real models at strength exact: the same bits, on the machine and on the fast path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from light_models import light_model
from sampling import sampled
from sonnx.checker.equivalence.optimizing.optimizer import optimize
from sonnx.checker.runtimes.differential.special_values import with_special_values
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.machine.execution import Limits, run
from sonnx.semantics.machine.inputs import random_inputs
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load, load_proto
from sonnx.semantics.model.schemas import newest_opset
from sonnx.semantics.model.values import Value, identical
from sonnx.semantics.model.writing import model_proto
from sonnx.semantics.runtimes.fastpath import RunError, Session

SHARED = Path(__file__).parents[4] / ".." / "shared" / "models"
NETS = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
STEPS, SECONDS = 5_000, 60.0


def shared() -> list[Path]:
    """The shared models that are meant to be right."""
    files = SHARED.glob("**/*.onnx") if SHARED.is_dir() else ()
    return sorted(it for it in files if it.relative_to(SHARED).parts[0] != "invalid")


def made_of(model: Model) -> Iterator[tuple[str, Model]]:
    """The model after `optimize`, as it is and raised to the newest operator set."""
    for opset in (None, newest_opset()):
        try:
            done = optimize(model, strength="exact", opset=opset)
            made = load_proto(model_proto(done.model))
        except (ModelError, Unsupported):  # such as functions that import another version: `optimize` refuses it
            continue
        assert done.finished and done.strength == "exact"
        yield f"opset {opset}", made


def inputs_of(model: Model) -> Iterator[Mapping[str, Value]]:
    for seed in range(2):
        drawn, _ = random_inputs(model, seed)
        yield drawn
        yield with_special_values(drawn, seed)


def on_machine(model: Model, given: Mapping[str, Value]) -> Mapping[str, Value] | None:
    try:
        ended = run(model, given, history=False, limits=Limits(steps=STEPS, seconds=SECONDS))
    except (ModelError, Unsupported):
        return None
    return None if ended.stuck is not None else ended.outputs


def on_fast_path(model: Model, given: Mapping[str, Value]) -> Mapping[str, Value] | None:
    try:
        session = Session(model)
        return dict(zip((it.name for it in session.get_outputs()), session.run(None, given), strict=True))
    except (RunError, ModelError, Unsupported):
        return None


def differences(model: Model, *, machine: bool = True) -> list[str]:
    """Where a run of the model comes to its end, and what was made of it gives other bits."""
    found = []
    for how, made in made_of(model):
        for number, given in enumerate(inputs_of(model)):
            for name, engine in (("machine", on_machine), ("fast path", on_fast_path))[not machine :]:
                wanted = engine(model, given)
                if wanted is None:
                    continue
                got = engine(made, given) or {}
                found += [
                    f"{how}, input {number}, {name}: {output}"
                    for output, value in wanted.items()
                    if output not in got or not identical(value, got[output])
                ]
    return found


@pytest.mark.parametrize("path", sampled(shared(), 2), ids=lambda path: "-".join(path.parts[-2:]))
@pytest.mark.filterwarnings("ignore")
def test_shared_models_give_the_same_bits(path: Path) -> None:
    try:
        model = load(path)
        next(inputs_of(model))
    except (ModelError, Unsupported) as problem:
        pytest.skip(str(problem))
    assert differences(model) == []


@pytest.mark.campaign
@pytest.mark.parametrize("name", NETS)
def test_light_nets_give_the_same_bits(name: str) -> None:
    assert differences(load_proto(light_model(name)), machine=name in ("squeezenet", "shufflenet")) == []
