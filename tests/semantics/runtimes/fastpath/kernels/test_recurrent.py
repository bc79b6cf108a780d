from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from applications import Case, applications
from fastpath_cases import agreement, disagreements, every, unbroken, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from sonnx.semantics.runtimes.fastpath.kernels.recurrent import KERNELS
from tables import table

F = np.float32
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
PLAIN = ["Relu", "LeakyRelu", "ThresholdedRelu", "Affine", "HardSigmoid"]
CURVED = ["Tanh", "Sigmoid", "ScaledTanh", "Elu", "Softsign", "Softplus"]
BOUND = 2.0**-16
"""A few steps of layers whose states stay within 1: a sum of ten terms errs by ten roundings, a step multiplies an
error by less than 4, and there are three of them: 2 ** (-24 + 4 + 2 * 2) beside results of at least 1 / 16.
"""


def _case(
    op_type: str,
    steps: int = 3,
    batch: int = 2,
    inputs: int = 2,
    hidden: int = 3,
    direction: str = "forward",
    *,
    dtype: Any = F,
    scale: float = 1.0,
    lengths: Any = None,
    given_b: bool = True,
    states: bool = True,
    peepholes: bool = False,
    layout: int = 0,
    outputs: int = 2,
    **attributes: Any,
) -> Case:
    d, g = 2 if direction == "bidirectional" else 1, GATES[op_type] * hidden
    made = lambda name, *shape: (whole((name, op_type), shape, np.float64, -2, 2) * scale).astype(dtype)  # noqa: E731
    first = (batch, d, hidden) if layout else (d, batch, hidden)
    values = [
        made("x", *((batch, steps, inputs) if layout else (steps, batch, inputs))),
        made("w", d, g, inputs),
        made("r", d, g, hidden),
        made("b", d, 2 * g) if given_b else None,
        None if lengths is None else np.array(lengths, np.int32),
        made("h", *first) if states else None,
    ]
    if op_type == "LSTM":
        values += [made("c", *first) if states else None, made("p", d, 3 * hidden) if peepholes else None]
    stated = {"direction": direction, **({"layout": 1} if layout else {}), **attributes}
    return tuple(values), stated, outputs


def _named(op_type: str, names: list[str], direction: str = "forward") -> dict[str, Any]:
    count = FUNCTIONS[op_type] * (2 if direction == "bidirectional" else 1)
    used = tuple(names[k % len(names)] for k in range(count))
    return {
        "activations": used,
        "activation_alpha": (0.5, 1.0, 2.0, 0.5, 1.0, 0.5)[:count],
        "activation_beta": (0.25,) * count,
    }


def _cases(op_type: str, **more: Any) -> list[Case]:
    found = []
    for direction in ("forward", "reverse", "bidirectional"):
        for lengths in (None, (2, 1), (0, 2), (2, 2)):
            for names in (["Relu"], PLAIN):
                found.append(
                    _case(
                        op_type,
                        2,
                        direction=direction,
                        lengths=lengths,
                        scale=0.5,
                        **_named(op_type, names, direction),
                        **more,
                    )
                )
    return found


@pytest.mark.parametrize(("op_type", "version"), every(KERNELS))
def test_exact_steps_agree_with_the_definition(op_type: str, version: int) -> None:
    cases = (
        _cases(op_type)
        + _cases(op_type, layout=1)
        + [
            _case(op_type, 1, dtype=t, scale=0.5, **_named(op_type, ["Relu"]))
            for t in (np.float64, np.float16, ml_dtypes.bfloat16)
        ]
    )
    cases += [
        _case(op_type, scale=0.5, given_b=b, states=s, **_named(op_type, ["Relu"])) for b in (0, 1) for s in (0, 1)
    ]
    cases += [
        _case(op_type, 2, scale=0.5, peepholes=True, direction=d, **_named(op_type, PLAIN, d))
        for d in ("reverse", "bidirectional")
    ]
    cases += [_case(op_type, scale=0.5, outputs=n, **_named(op_type, ["relu"])) for n in (1, 2, 3)]
    cases += [_case(op_type, scale=0.5, clip=0.5, **_named(op_type, ["Relu", "Affine"]))]
    assert not disagreements(KERNELS, op_type, version, cases, signs=False)


@table(("op_type", "version"), every(KERNELS))
def test_each_option_agrees_with_the_definition(op_type: str, version: int) -> None:
    options = {"LSTM": "input_forget", "GRU": "linear_before_reset"}
    if op_type in options:
        stated = {options[op_type]: 1}
        cases = [
            _case(op_type, scale=0.5, given_b=b, peepholes=p, **stated, **_named(op_type, PLAIN))
            for b in (0, 1)
            for p in (0, 1)
        ]
        assert not disagreements(KERNELS, op_type, version, cases, signs=False)


@table(("op_type", "version"), every(KERNELS))
def test_empty_sequences_batches_inputs_and_layers_agree_with_the_definition(op_type: str, version: int) -> None:
    more = _named(op_type, ["Relu"])
    cases = [_case(op_type, 0, **more), _case(op_type, batch=0, **more), _case(op_type, inputs=0, scale=0.5, **more)]
    cases += [_case(op_type, 0, direction="reverse", lengths=(0, 0), **more), _case(op_type, hidden=0, **more)]
    assert not disagreements(KERNELS, op_type, version, cases, signs=False)


@table("name", CURVED)
@table("op_type", KERNELS)
def test_each_curved_function_of_exact_sums_agrees_with_the_definition(op_type: str, name: str) -> None:
    cases = [_case(op_type, 1, scale=0.5, hidden=2, dtype=t, **_named(op_type, [name]))
             for t in (F, np.float64, np.float16)]  # fmt: skip
    within = {"LSTM": BOUND, "GRU": BOUND}.get(op_type, 0.0)
    cases = cases[:2] if within else cases
    assert not disagreements(KERNELS, op_type, 14, cases, signs=False, within=within)


@pytest.mark.parametrize(("op_type", "version"), every(KERNELS))
def test_steps_that_are_not_exact_differ_by_their_roundings_alone(op_type: str, version: int) -> None:
    cases = [
        _case(op_type, scale=0.3, direction=d, lengths=n, states=False)
        for d in ("forward", "bidirectional")
        for n in (None, (3, 2))
    ]
    made = applications(op_type, version, 0)
    assert not disagreements(KERNELS, op_type, version, cases, signs=False, within=2.0**-12)
    assert not [r for a in made if (r := agreement(KERNELS, a, signs=False, within=2.0**-12))]


def test_a_nan_stays_in_its_sequence_and_is_not_bounded_by_clip() -> None:
    for op_type in KERNELS:
        inputs, attributes, outputs = _case(op_type, scale=0.5, **_named(op_type, ["Relu"]), clip=1.0)
        x = inputs[0].copy()
        x[1, 0, 0] = np.nan
        assert not disagreements(KERNELS, op_type, 14, [((x, *inputs[1:]), attributes, outputs)], signs=False)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.data())
def test_small_layers_agree_with_the_definition_or_both_refuse(data: st.DataObject) -> None:
    op_type, version = data.draw(st.sampled_from(every(KERNELS)))
    batch, steps = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    lengths = data.draw(st.none() | st.lists(st.integers(-1, 4), min_size=batch, max_size=batch))
    direction = data.draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    names = data.draw(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=3))
    layout = data.draw(st.integers(0, 1)) if version >= 14 else 0
    case = _case(
        op_type,
        steps,
        batch,
        data.draw(st.integers(0, 2)),
        data.draw(st.integers(1, 2)),
        direction,
        scale=0.5,
        layout=layout,
        lengths=lengths,
        given_b=data.draw(st.booleans()),
        states=data.draw(st.booleans()),
        **_named(op_type, names, direction),
    )
    assert not disagreements(KERNELS, op_type, version, [case], signs=False)


def _with(case: Case, position: int, shape: tuple[int, ...], **attributes: Any) -> Case:
    inputs = list(case[0])
    inputs[position] = np.zeros(shape, F if position != 4 else np.int32)
    return tuple(inputs), {**case[1], **attributes}, 1


def _broken(op_type: str) -> list[Case]:
    case = _case(op_type)
    g = GATES[op_type] * 3
    return [
        _case(op_type, layout=2),
        (case[0], {"layout": 2}, 1),
        (case[0], {"direction": "sideways"}, 1),
        (case[0], {"direction": "bidirectional"}, 1),
        _with(_with(case, 1, (1, g + 1, 2)), 2, (1, g + 1, 3)),
        (case[0], {"hidden_size": 4}, 1),
        _with(case, 3, (1, 2 * g + 1)),
        _with(case, 5, (1, 3, 3)),
        _with(case, 4, (3,)),
        _case(op_type, lengths=(4, 0)),
        _case(op_type, lengths=(-1, 0)),
        (case[0], {"activations": ("Relu",) * 7}, 1),
        (case[0], {"activations": ()}, 1),
        (case[0], {"activations": ("Cosine",) * FUNCTIONS[op_type]}, 1),
        (case[0], {"activations": ("ScaledTanh",) * FUNCTIONS[op_type]}, 1),
        (case[0], {"clip": -1.0}, 1),
        _with(case, 1, (1, g, 4)),
        _with(case, 0, (3, 2)),
        _with(case, 2, (2, g, 3)),
        *([_with(case, 6, (1, 3, 3)), _with(case, 7, (1, 8))] if op_type == "LSTM" else []),
    ]


@table(("op_type", "version"), every(KERNELS))
def test_each_requirement_is_demanded(op_type: str, version: int) -> None:
    assert not unbroken(op_type, version, _broken(op_type))
    assert not disagreements(KERNELS, op_type, version, _broken(op_type), signs=False, within=BOUND)
