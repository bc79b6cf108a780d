from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto
from sonnx.semantics.machine.judging import Applied, Standing, applied, judge
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.operators.application import Application
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
EARLY, MIDDLE, LATE = (6, 9, 13), (19, 21, 23), (24, 25, 28)
ALL = EARLY + MIDDLE + LATE
INTEGERS = {
    "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64,
    "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
}  # fmt: skip
FLOAT8 = {
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2, "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}  # fmt: skip


def _to(name: str) -> dict[str, int]:
    return {"to": TensorProto.DataType.Value(name)}


@table("version", ALL)
def test_a_cast_between_floats_rounds_to_nearest_even_and_overflows_to_infinity(
    version: int, run: Run, same: Run
) -> None:
    x = np.array([NAN, INF, -INF, -0.0, 65519, 65520, -1e6, 2**-25, 2**-25 * 1.5, 1 + 2**-11, 1 + 3 * 2**-11], F)
    expected = np.array([NAN, INF, -INF, -0.0, 65504, INF, -INF, 0, 2**-24, 1, 1 + 2**-9], np.float16)
    same(run("Cast", version, x, **_to("FLOAT16")), expected)
    same(run("Cast", version, expected, **_to("DOUBLE")), expected.astype(np.float64))


def test_a_cast_from_double_rounds_once(run: Run, same: Run) -> None:
    x = np.array([1 + 2**-8 + 2**-40, 1 + 2**-11 + 2**-40])
    same(run("Cast", 13, x[:1], **_to("BFLOAT16")), np.array([1 + 2**-7], ml_dtypes.bfloat16))
    same(run("Cast", 13, x[1:], **_to("FLOAT16")), np.array([1 + 2**-10], np.float16))


@table("version", ALL)
@table("name", INTEGERS)
def test_a_cast_from_a_float_to_integers_truncates(version: int, name: str, run: Run, same: Run) -> None:
    x = np.array([0.0, -0.0, -0.9, 0.9, 2.5, 3.5, 126.99], F)
    same(run("Cast", version, x, **_to(name)), np.array([0, 0, 0, 0, 2, 3, 126], INTEGERS[name]))


@table("version", ALL)
def test_a_float_outside_the_integers_leaves_the_result_open(version: int, run: Run, free: Run) -> None:
    x = np.array([NAN, INF, -INF, 127.9, 128, -128.9, -129, 5], F)
    open_ = [True, True, True, False, True, False, True, False]
    assert free("Cast", version, x, **_to("INT8")).tolist() == open_
    assert run("Cast", version, x, **_to("INT8"))[[3, 5, 7]].tolist() == [127, -128, 5]
    assert free("Cast", version, np.array([-0.9, -1.0, 2.0**64], F), **_to("UINT64")).tolist() == [False, True, True]


@table("version", ALL)
@table("source", INTEGERS)
@table("target", INTEGERS)
def test_a_cast_between_integers_wraps_around(version: int, source: str, target: str, run: Run, same: Run) -> None:
    info = np.iinfo(INTEGERS[source])
    x = np.array([info.min, 0, 1, info.max // 3, info.max], INTEGERS[source])
    low, size = int(np.iinfo(INTEGERS[target]).min), 2 ** np.iinfo(INTEGERS[target]).bits
    wrapped = [(v - low) % size + low for v in x.tolist()]
    same(run("Cast", version, x, **_to(target)), np.array(wrapped, INTEGERS[target]))


def test_a_cast_to_integers_of_4_bits_wraps_around(run: Run, same: Run) -> None:
    x = np.array([-9, -8, 7, 8, 200], np.int16)
    same(run("Cast", 21, x, **_to("INT4")), np.array([7, -8, 7, -8, -8], ml_dtypes.int4))
    same(run("Cast", 21, x, **_to("UINT4")), np.array([7, 8, 7, 8, 8], ml_dtypes.uint4))
    same(run("Cast", 25, x, **_to("INT2")), np.array([-1, 0, -1, 0, 0], ml_dtypes.int2))


@table("version", ALL)
def test_a_cast_from_integers_rounds_to_nearest_even(version: int, run: Run, same: Run) -> None:
    x = np.array([2**24 + 1, 2**24 + 3, -(2**63), 2**63 - 1, 2**53 + 1])
    expected = np.array([2**24, 2**24 + 4, -(2.0**63), 2.0**63, 2.0**53], F)
    same(run("Cast", version, x, **_to("FLOAT")), expected)
    same(
        run("Cast", version, np.array([65519, 65520, -70000]), **_to("FLOAT16")),
        np.array([65504, INF, -INF], np.float16),
    )


@table("version", ALL)
def test_a_cast_to_bool_tells_whether_it_is_not_0(version: int, run: Run, same: Run) -> None:
    x = np.array([0.0, -0.0, 0.1, -3, NAN, INF, 1e-45], F)
    same(run("Cast", version, x, **_to("BOOL")), np.array([False, False, True, True, True, True, True]))
    same(run("Cast", version, np.array([0, 36, -256]), **_to("BOOL")), np.array([False, True, True]))
    for name, dtype in (("FLOAT", F), ("INT8", np.int8), ("UINT64", np.uint64), ("BOOL", np.bool_)):
        same(run("Cast", version, np.array([False, True]), **_to(name)), np.array([0, 1], dtype))


@table("version", MIDDLE + LATE)
@table("name", FLOAT8)
def test_a_cast_to_float8_saturates(version: int, name: str, run: Run, same: Run) -> None:
    dtype = FLOAT8[name]
    limit = float(ml_dtypes.finfo(dtype).max)
    infinite = NAN if version in MIDDLE and name.endswith("FNUZ") else limit
    zero = 0.0 if name.endswith("FNUZ") else -0.0
    x = np.array([NAN, INF, -INF, 1e9, -1e9, -0.0, 1, limit], F)
    expected = np.array([np.nan, infinite, -infinite, limit, -limit, zero, 1, limit]).astype(dtype)
    same(run("Cast", version, x, **_to(name)), expected)
    same(run("Cast", version, np.array([10**9, -7]), **_to(name)), np.array([limit, -7]).astype(dtype))
    same(run("Cast", version, np.array([False, True]), **_to(name)), np.array([0, 1]).astype(dtype))


@table("version", MIDDLE + LATE)
@table("name", FLOAT8)
def test_a_cast_to_float8_without_saturate_overflows(version: int, name: str, run: Run, same: Run) -> None:
    dtype = FLOAT8[name]
    beyond = INF if name == "FLOAT8E5M2" else NAN
    zero = 0.0 if name.endswith("FNUZ") else -0.0
    x = np.array([NAN, INF, -INF, 1e9, -1e9, -0.0, 1], F)
    expected = np.array([np.nan, beyond, -beyond, beyond, -beyond, zero, 1]).astype(dtype)
    same(run("Cast", version, x, saturate=0, **_to(name)), expected)


@table("saturate", [0, 1])
@table("version", [23, 24, 25, 28])
def test_a_cast_to_float4_is_limited_to_its_numbers(
    version: int, saturate: int, run: Run, free: Run, same: Run
) -> None:
    dtype = ml_dtypes.float4_e2m1fn
    x = np.array([INF, -INF, 7, -100, 0.25, 0.75, 5, -0.0], F)
    same(
        run("Cast", version, x, saturate=saturate, **_to("FLOAT4E2M1")),
        np.array([6, -6, 6, -6, 0, 1, 4, -0.0]).astype(dtype),
    )
    assert free("Cast", version, np.array([NAN, 1], F), **_to("FLOAT4E2M1")).tolist() == [True, False]


@table(
    ("round_mode", "expected"),
    [("up", [1, 2, 2, 2, 4, 2]), ("down", [1, 1, 1, 1, 2, 1]), ("nearest", [1, 1, 2, 2, 4, 1])],
)
@table("version", LATE)
def test_a_cast_to_float8e8m0_rounds_to_a_power_of_2(
    version: int, round_mode: str, expected: list[float], run: Run, same: Run
) -> None:
    x = np.array([1, 1.4, 1.5, 1.6, 3, np.nextafter(F(1.5), F(1))], F)
    found = run("Cast", version, x, round_mode=round_mode, **_to("FLOAT8E8M0"))
    same(found, np.array(expected).astype(ml_dtypes.float8_e8m0fnu))


@pytest.mark.parametrize("round_mode", ["up", "down", "nearest"])
def test_a_cast_to_float8e8m0_outside_its_range(round_mode: str, run: Run, free: Run, same: Run) -> None:
    x = np.array([NAN, 0.0, INF, 2.0**-130, 3e38, 2.0**127, 2.0**-127], F)
    limited = np.array([NAN, 2.0**-127, 2.0**127, 2.0**-127, 2.0**127, 2.0**127, 2.0**-127])
    same(run("Cast", 24, x, round_mode=round_mode, **_to("FLOAT8E8M0")), limited.astype(ml_dtypes.float8_e8m0fnu))
    found = run("Cast", 24, x, round_mode=round_mode, saturate=0, **_to("FLOAT8E8M0")).astype(F)
    assert np.isnan(found).tolist() == [True, True, True, True, True, False, False]
    x = np.array([-1, -0.0, -INF, 1], F)
    assert free("Cast", 24, x, round_mode=round_mode, **_to("FLOAT8E8M0")).tolist() == [True, True, True, False]


def test_round_mode_is_one_of_three_words(refused: Run) -> None:
    assert "round_mode" in refused("Cast", 24, np.ones(1, F), round_mode="even", **_to("FLOAT"))


@pytest.mark.parametrize("version", [9, 13, 19, 24])
def test_strings_stay_strings_and_are_no_truth_values(version: int, run: Run, refused: Run, same: Run) -> None:
    x = np.array([b"1", b"a"], object)
    same(run("Cast", version, x, **_to("STRING")), x)
    assert "bool" in refused("Cast", version, x, **_to("BOOL"))
    assert "bool" in refused("Cast", version, np.ones(1, bool), **_to("STRING"))


# ---- Strings and numbers ------------------------------------------------------------------------

STRINGS = pytest.mark.parametrize("version", [9, 13, 19, 24])


def _words(*texts: str) -> Any:
    made = np.empty(len(texts), object)
    made[:] = [text.encode() for text in texts]
    return made


@STRINGS
def test_a_string_becomes_the_number_that_it_spells(version: int, run: Run, same: Run) -> None:
    x = _words("3.14", "1000", "1e-5", "1E8", "-.5", "5.", "+7", "NaN", "nan", "INF", "+inf", "-INF", "-0", "1e400")
    expected = [3.14, 1000, 1e-5, 1e8, -0.5, 5, 7, NAN, NAN, INF, INF, -INF, -0.0, INF]
    for code, dtype in (("FLOAT", F), ("DOUBLE", np.float64)):
        same(run("Cast", version, x, **_to(code)), np.array(expected, dtype))
    x = _words("12", "-3", "007", "300", "-1", "1" + "0" * 5000 + "1")
    same(run("Cast", version, x, **_to("INT16")), np.array([12, -3, 7, 300, -1, 1], np.int16))
    same(run("Cast", version, x, **_to("UINT8")), np.array([12, 253, 7, 44, 255, 1], np.uint8))


@STRINGS
@pytest.mark.parametrize(
    "text", ["", "abc", " 1", "1 ", "0x1F", "1_0", "--1", "1e", ".", "+NaN", "infinity", "١", "1\n"]
)
def test_a_string_that_spells_no_number_is_refused(version: int, text: str, refused: Run) -> None:
    for code in ("FLOAT", "FLOAT16", "INT64", "UINT8"):
        assert "spell a number" in refused("Cast", version, _words("1", text), **_to(code))


@STRINGS
@pytest.mark.parametrize("text", ["2.718", "100.5", "1e2", "NaN", "INF", "1."])
def test_a_string_that_spells_no_integer_is_refused_for_integers(version: int, text: str, refused: Run) -> None:
    assert "an integer" in refused("Cast", version, _words(text), **_to("INT32"))


@STRINGS
def test_a_string_is_rounded_once(version: int, run: Run, same: Run) -> None:
    above = f"1.00048828125{'0' * 30}1"  # the middle of two numbers of float16, and more by less than double tells
    x = _words(above, above[:-1], "-" + above)
    same(run("Cast", version, x, **_to("FLOAT16")), np.array([1 + 2**-10, 1, -1 - 2**-10], np.float16))


@pytest.mark.parametrize(
    "dtype", [F, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.int8, np.uint64]
)
def test_a_number_becomes_a_string_that_spells_it(dtype: Any, run: Run, same: Run) -> None:
    numbers = [0, 1, 127, 3] if np.dtype(dtype).kind in "iu" else [0.1, -0.0, 1e-5, 3e4, NAN, INF, -INF, 1 / 3, 6e-5]
    x = np.array(numbers).astype(dtype)
    code = {v: k for k, v in DTYPES.items()}[np.dtype(dtype)]
    same(run("Cast", 19, run("Cast", 19, x, **_to("STRING")), **_to(code.upper()), saturate=0), x)


@STRINGS
def test_the_string_of_a_number_is_plain(version: int, run: Run, same: Run) -> None:
    x = np.array([1, 0.1, 1e-5, 1e16, -0.0, NAN, INF, -INF], F)
    words = _words("1.0", "0.1", "0.00001", "10000000000000000.0", "-0.0", "NaN", "INF", "-INF")
    same(run("Cast", version, x, **_to("STRING")), words)
    same(run("Cast", version, np.array([-7, 0], np.int8), **_to("STRING")), _words("-7", "0"))


def _standing(x: Any, given: Any, code: str) -> Standing:
    specified = applied(Application("Cast", 19, (x,), _to(code), (True,)))
    assert isinstance(specified, Applied)
    (judged,) = judge(specified, (given,))
    assert judged is not None
    return judged.standing


@pytest.mark.parametrize(
    ("number", "allowed", "others"),
    [
        (F(0.1), ["0.1", "+.1", "1e-1", "0.10000000149", "1E-01"], ["0.2", "0,1", " 0.1", "-0.1", "", "0.1f", "NaN"]),
        (F(-0.0), ["-0", "-0.0", "-0e5"], ["0", "0.0", "+0"]),
        (F(NAN), ["nan", "NaN", "NAN"], ["-nan", "0", "INF"]),
        (F(-INF), ["-inf", "-INF", "-1e40"], ["INF", "-infinity", "NaN"]),
        (np.float64(1 / 3), ["0.3333333333333333", "3.33333333333333314829616256247e-1"], ["0.33333333", "1/3"]),
        (ml_dtypes.bfloat16(3.140625), ["3.14", "3.140625"], ["3.1", "3.16"]),
        (np.int8(-7), ["-7", "-007"], ["7", "-7.0", "249", "-7 "]),
        (np.uint8(200), ["200", "+200"], ["-56", "456", "2e2"]),
    ],
)  # fmt: skip
def test_every_spelling_of_a_number_is_allowed_and_no_other_string(
    number: Any, allowed: list[str], others: list[str]
) -> None:
    x = np.array([number])
    fitting = (Standing.WITHIN, Standing.EXACT)
    assert [text for text in allowed if _standing(x, _words(text), "STRING") not in fitting] == []
    assert [text for text in others if _standing(x, _words(text), "STRING") is not Standing.OUTSIDE] == []


def test_a_string_read_through_double_is_allowed_and_a_worse_number_is_not() -> None:
    above = "1.00048828125" + "0" * 30 + "1"
    for number, standing in ((1 + 2**-10, Standing.EXACT), (1, Standing.WITHIN), (1 + 2**-9, Standing.OUTSIDE)):
        assert _standing(_words(above), np.array([number], np.float16), "FLOAT16") is standing
    for number, standing in ((1 / 3, Standing.EXACT), (np.nextafter(1 / 3, 1), Standing.OUTSIDE)):
        assert _standing(_words("0.3333333333333333"), np.array([number]), "DOUBLE") is standing


@table("version", ALL)
def test_a_cast_of_an_empty_tensor_has_the_type(version: int, run: Run, same: Run) -> None:
    same(run("Cast", version, np.zeros((2, 0), F), **_to("INT8")), np.zeros((2, 0), np.int8))


@pytest.mark.parametrize(
    ("op_type", "version", "inputs", "attributes"),
    [
        ("Cast", 9, (np.ones(1, F),), {"to": 16}),
        ("Cast", 13, (np.ones(1, F),), {"to": 22}),
        ("Cast", 13, (np.ones(1, F),), {"to": 17}),
        ("ConstantOfShape", 9, (np.array([2]),), {"value": np.zeros(1, ml_dtypes.bfloat16)}),
        ("QuantizeLinear", 21, (np.ones(1, F), np.ones(1, F)), {"output_dtype": 1}),
        ("DequantizeLinear", 23, (np.array([1], np.uint8), np.ones(1, F)), {"output_dtype": 6}),
        ("DequantizeLinear", 23, (np.array([1], np.uint8), np.ones(1, F)), {"output_dtype": 11}),
        *(
            ("DequantizeLinear", v, (np.array([1], np.uint8), np.ones(1, ml_dtypes.float8_e8m0fnu)), {})
            for v in (24, 25, 28)
        ),
        ("SequenceEmpty", 11, (), {"dtype": 16}),
    ],
)
def test_an_output_has_a_type_that_the_schema_admits(
    op_type: str, version: int, inputs: Any, attributes: Any, refused: Run
) -> None:
    assert refused(op_type, version, *inputs, **attributes).startswith(("output: ", "y: "))


@pytest.mark.parametrize(
    ("op_type", "attributes", "sentence"),
    [("Cast", {}, "requires"), ("Cast", {"to": "float"}, "kind of value"), ("Relu", {"to": 1}, "but those of")],
)
def test_attributes_are_those_of_the_schema(op_type: str, attributes: Any, sentence: str, refused: Run) -> None:
    assert sentence in refused(op_type, 13, np.ones(2, np.float32), **attributes)
