"""Values in JSON files, by the declared type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.files.json_files import read_json
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Map, Optional, Sequence, Value, identical

FLOAT, INT8, TEXT = ValueType("tensor", "float"), ValueType("tensor", "int8"), ValueType("tensor", "string")


def of(content: object, dtype: object = np.float32) -> Value:
    return np.array(content, dtype)


GOOD: list[tuple[str, ValueType, Value]] = [
    ("[[1, 2.5], [NaN, -0.0]]", FLOAT, of([[1, 2.5], [np.nan, -0.0]])),
    ("7", INT8, of(7, np.int8)),
    ("[]", FLOAT, of([])),
    ('["a", "\u00e9"]', TEXT, of([b"a", "\u00e9".encode()], object)),
    ("[true]", ValueType("tensor", "bool"), of([True], np.bool_)),
    ('{"10": 1, "-2": 3}', ValueType("map", "int64", inner=FLOAT), Map("int64", FLOAT, ((-2, of(3)), (10, of(1))))),
    ('{"b": 1, "a": 3}', ValueType("map", "string", inner=FLOAT), Map("string", FLOAT, ((b"a", of(3)), (b"b", of(1))))),
    ("[1, [2]]", ValueType("sequence", inner=FLOAT), Sequence(FLOAT, (of(1), of([2])))),
    ("null", ValueType("optional", inner=FLOAT), Optional(FLOAT, None)),
    ("4", ValueType("optional", inner=FLOAT), Optional(FLOAT, of(4))),
]
BAD: list[tuple[str, ValueType, str]] = [
    ("{", FLOAT, "no JSON"),
    ('{"a": 1, "a": 2}', ValueType("map", "string", inner=FLOAT), "twice"),
    ('{"1": 1, "01": 2}', ValueType("map", "int64", inner=FLOAT), "twice"),
    ('{"x": 1}', ValueType("map", "int64", inner=FLOAT), "no int64"),
    ('{"9223372036854775808": 1}', ValueType("map", "int64", inner=FLOAT), "no int64"),
    ("[1]", ValueType("map", "int64", inner=FLOAT), "is no map"),
    ("[[1], [1, 2]]", FLOAT, "differ in length"),
    ("[1.5]", INT8, "no int8"),
    ("[128]", INT8, "no int8"),
    ("[true]", FLOAT, "no float"),
    ('{"a": 1}', FLOAT, "no float"),
    ('{"1_0": 1}', ValueType("map", "int64", inner=FLOAT), "no int64"),
    ('{" 1": 1}', ValueType("map", "int64", inner=FLOAT), "no int64"),
    ('{"\u0661": 1}', ValueType("map", "int64", inner=FLOAT), "no int64"),
    ("9" * 400, FLOAT, "it holds nothing that is float"),
    ("[" * 70 + "]" * 70, FLOAT, "it holds nothing that is float"),
    ("[" * 900 + "]" * 900, FLOAT, "it holds nothing that is float|no JSON"),
    ('"\\ud800"', TEXT, "it holds nothing that is string"),
    ("1", TEXT, "no string"),
]


def test_a_file_holds_the_value_of_its_type(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    for text, declared, value in GOOD:
        path.write_text(text, encoding="utf-8")
        assert identical(read_json(path, declared), value), text


def test_a_file_that_holds_none_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    for text, declared, reason in BAD:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ModelError, match=reason):
            read_json(path, declared)
    with pytest.raises(ModelError, match="not declared"):
        read_json(path, None)
