"""The expression language: what it says, in which types it computes, and what it refuses."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from debugger_models import answer, nested, session, text
from onnx import helper
from sonnx.semantics.debugger.display.answers import Refusal, Shown
from sonnx.semantics.debugger.expressions import FUNCTIONS, evaluate, expression_text, holds, parse
from sonnx.semantics.debugger.session.session import Session, context
from sonnx.semantics.debugger.timeline.history import Refused
from tables import table


def tensors() -> Session:
    values = {
        "x": np.array([[1.5, -2.0, np.nan], [np.inf, 0.0, -0.0]], np.float32),
        "i": np.array([1, 2, 300], np.int64),
        "odd name": np.array([4.0], np.float32),
        "a/b.c": np.array([[7.0, 8.0]], np.float32),
        "n": np.array(2),
        "b": np.array([True, False]),
        "t": np.array([b"text"], object),
        "d": np.array([0.1], np.float32),
    }
    nodes = [helper.make_node("Identity", [name], [f"out {name}"]) for name in values]
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in values.items()
    ]
    outputs = [
        helper.make_tensor_value_info(f"out {name}", info.type.tensor_type.elem_type, None)
        for name, info in zip(values, infos, strict=True)
    ]
    graph = helper.make_graph(nodes, "g", infos, outputs)
    return session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), values)


VALUES = {
    "x[0, 0]": 1.5,
    "x[-1, 0] == inf": True,
    "count(isnan(x))": 1,
    "any(isinf(x)) and not all(b)": True,
    "x[0, 0] * 2 + i[1] - 1": 4.0,
    "max(i) / 8": 37.5,
    "min(abs(x[0, :2]))": 1.5,
    "-i[0] < 0 or 1 / 0 > 0": True,
    "max(shape(x))": 3,
    "dtype(x) == 'float'": True,
    "dtype(i) != 'int32'": True,
    '"odd name"[0]': 4.0,
    '`/"a/b.c"`[0, 1]': 8.0,
    "t[0] == 'text'": True,
    "i[n]": 300,
    "max(i[::2])": 300,
    "max(i[1:])": 300,
    "0x10 + 1e1": 26.0,
    "ulp(d[0]) == 7.450580596923828e-09": True,
    "ulp(x[1, 1], x[1, 2])": 0,
    "d[0] == 0.1": False,
    "nan == nan": False,
    "$step + $run + $depth": 0,
    "$op == 'Identity'": True,
    "x[..., 0][0]": 1.5,
    "2 * (3 + 4)": 14,
    "1 - 2 - 3": -4,
}


@table("said", VALUES)
def test_expressions_have_the_value_that_they_say(said: str) -> None:
    found = evaluate(parse(said), context(tensors()))
    assert isinstance(found, np.ndarray) and found.size == 1
    assert found.reshape(-1)[0] == VALUES[said]


def test_an_ulp_is_counted_in_the_tensors_own_type() -> None:
    for dtype in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        one, next_ = np.array([1.0]).astype(dtype), None
        bits = one.view(f"u{one.dtype.itemsize}") + 1
        next_ = bits.view(dtype)
        assert FUNCTIONS["ulp"]((one, next_))[0] == 1  # type: ignore[index]
        assert FUNCTIONS["ulp"]((-one, one))[0] > 1  # type: ignore[index,operator]
        apart = next_.astype(np.float64) - one.astype(np.float64)
        assert FUNCTIONS["ulp"]((one,))[0] == apart[0]  # type: ignore[index]


REFUSED = [
    "", "x[", "x[0", "x[0, 0, 0]", "x[5, 0]", "y", "f(x)", "x + 't'", "__import__('os')", "x.shape", "x if 1 else 2",
    "lambda: 1", "x[x]", "i[::0]", "ulp(i)", "min(x[:0])", "'a' < 'b'", "$nothing", "$old", "x + b", "t + 1",
    "`/9:Add`",
    "(" * 500 + "x" + ")" * 500, "x" * 5000, "1 2", "x[0]]", "any()", "not " * 300 + "1",
]  # fmt: skip


@table("said", REFUSED)
def test_what_is_no_expression_is_refused_in_a_sentence(said: str) -> None:
    got = answer(tensors(), f"print {said}")[1]
    assert isinstance(got, Refusal) and got.message
    assert "Traceback" not in got.message


def test_a_condition_is_one_truth_value_and_does_not_hold_where_a_value_is_missing() -> None:
    found = nested()
    with pytest.raises(Refused, match="use any"):
        holds(parse("x > 0"), context(found))
    assert not holds(parse("y[0] > 0 or x[0] > 0"), context(found))
    assert holds(parse("x[0] > 0 or y[0] > 0"), context(found))


@table(
    ("line", "lines"),
    [
        ("print x[0]", ("1.5 -2.0 nan",)),
        ("print /x x[1, 0]", ("0x7f800000",)),
        ("print /a x[0, 0]", ("0x1.8000000000000p+0",)),
        ("print /x x[1, 2]", ("0x80000000",)),
        ("print x[1, 2]", ("-0.0",)),
        ("print d", ("0.1",)),
        ("print odd name", ("4.0",)),
        ("print a/b.c[0, 1]", ("8.0",)),
        ("print b", ("true false",)),
        ("print t", ('"text"',)),
        ("print x -n 2", ("[0, :] 1.5 -2.0", "... 4 more elements: take a slice, or print -n 6")),
    ],
)
def test_values_are_printed_exactly(line: str, lines: tuple[str, ...]) -> None:
    got = answer(tensors(), line)[1]
    assert isinstance(got, Shown) and got.lines == lines


def test_large_tensors_come_with_statistics() -> None:
    values = np.linspace(-1, 1, 32, dtype=np.float32)
    values[3], values[4], values[5] = np.nan, np.inf, 1e-40
    found = session(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[32] x) => (float[32] y) { y = Neg (x) }', {"x": values}
    )
    got = answer(found, "step", "print y")[1]
    assert isinstance(got, Shown)
    assert {"nan": "1", "inf": "1", "subnormal": "1", "elements": "32", "min": "-1", "max": "1"}.items() <= dict(
        got.statistics
    ).items()
    assert text(found, "whatis x").splitlines() == ["float[32]", '/"x", line 5']


@table(
    "line",
    [*VALUES, "x[1:, ::2]", "x[:2:1]", "x[...]", "x[..., 0]", "(x + i)[0]", "-(-x)", "-x[0]",
     "not (x > 1 and i < 2) or true", "x - (i - 1)", "x - i - 1", "x / (i * 2)", "1e-300", "$old != $new",
     '"a\\n b"[0]', "max(x[i[0]], nan)", "x == 'text'"],
)  # fmt: skip
def test_the_text_of_an_expression_says_the_same_expression(line: str) -> None:
    found = parse(line)
    assert parse(expression_text(found)) == found


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("print y[", '"y[": this is not complete'),
        ("print 3 +", '"3 +": this is not complete'),
        ("print y[0] )", "cannot be read from column 6 on"),
        ("print y[0,, 1]", "cannot be read from column 5 on"),
        ("print ]", "cannot be read from column 1 on"),
    ],
)
def test_a_column_is_of_what_was_typed(line: str, said: str) -> None:
    assert said in text(nested(), line)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sum(y)", 0.0),
        ("sum(2 * n)", 6),
        ("mean(x)", -0.5),
        ("norm(x)", 5**0.5),
        ("argmax(x)", [0]),
        ("argmin(x)", [1]),
        ("argmax(n)", []),
        ("where(x > 0, x, 10)", [1.0, 10.0]),
        ("x @ x", 5.0),
        ("x @ x - norm(x) * norm(x) < 0.001", True),
        ("histogram(x, 2)", [[-2.0, -0.5, 1.0], [-0.5, 1.0, 1.0]]),
        ("sum(histogram(x)[:, 2])", 2.0),
        ("max(abs(x[:1] - x[0]))", 0.0),
        ("sum(isnan(x / 0 - x / 0))", 2),
    ],
)
def test_functions_on_whole_tensors(expression: str, value: object) -> None:
    found = answer(nested(), "seek 1")[0]
    got = evaluate(parse(expression.replace("sum(y)", "sum(x - x)")), context(found))
    assert isinstance(got, np.ndarray) and np.array_equal(got, np.asarray(value)), got


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("sum('t')", "one tensor"),
        ("mean(x[0:0])", "no elements"),
        ("argmax(x[0:0])", "no elements"),
        ("where(x, x)", "two tensors"),
        ("where(x, 'a', 'b')", "two tensors"),
        ("where(x, x, histogram(x, 3))", "do not fit"),
        ("x @ 3", "factors of @"),
        ("x @ histogram(x, 3)", "factors of @"),
        ("histogram(x / 0)", "no finite"),
        ("histogram(x, 0)", "1 to 1000 bins"),
        ("histogram(x, x[0:0])", "1 to 1000 bins"),
        ("histogram(where(x > 0, 1.7e308, -1.7e308))", "too far apart"),
        ("sum(where(x > 0, 9223372036854775807, 1))", "beyond 64 bits"),
    ],
)
def test_functions_say_what_they_take(expression: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        evaluate(parse(expression), context(nested()))
