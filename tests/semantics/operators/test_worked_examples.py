"""The worked examples of the working group's operator specifications, and their errata, against the definitions.

The examples print numbers that were computed in double, in float, or by hand. One that is marked as recomputed passes
when each number that it prints is the one of double or the one of float, to the last digit printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sonnx.semantics.model import schemas
from sonnx.semantics.model.elements import dtype_of
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.operators.compiled.ieee import apply
from sonnx.spec.library import specification
from tables import table

FILE = Path(__file__).parents[3] / ".." / "shared" / "models" / "sonnx-examples" / "worked_examples.json"
ABSENT = "" if FILE.is_file() else "the shared models are not at ../shared/models"
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)

APART = {
    "pow/real/2": "a negative number to a quotient of odd integers is a real number, but NaN in IEEE 754",
}
"""Examples of real arithmetic whose numbers the arithmetic of an element type does not have, with the reason."""
DIGITS = {
    "softmax/float/1": "exp(-26.2) is 4.182968e-12, and 4.18296517e-12 in float; the source prints 4.182965147e-12",
    "tanh/float/2": "tanh(4) is 0.99932930, and 0.99932933 in float, where the source prints 0.99932921",
    "tanh/real/2": "tanh(4) is 0.99932930, where the source prints 0.99932921",
}
"""Examples that are marked as recomputed and whose last digits are nevertheless those of no correct result."""
FLOAT_DIGITS = Fraction(1, 2**20)
"""How far such a number is from the result, relatively: some units in the last place of float."""
ERRATA = {
    "batch_normalization/real/2": "wrong value",
    "batch_normalization/float/1": "wrong value",
    "leakyrelu/float/1": "wrong value",
    "maxpool/real/1": "misprint",
    "maxpool/int/4": "wrong value",
    "reshape/any/3": "violates its own constraint",
    "sigmoid/real/2": "inexact digits",
    "sigmoid/float/2": "inexact digits",
    "sub/int/1": "wrong value",
    "sub/int/2": "wrong value",
    "where/int/1": "missing input",
}
ELEMENTS = {"real": ("double", "float"), "float": ("double", "float"), "int": ("int64", "int32"), "any": ("int64",)}
"""The element types in which an example that does not name one is run."""
COARSEST = Fraction(1, 1000)
"""The last digit printed counts at most this much: 1.0 stands for a number near 1."""
Example = Mapping[str, Any]


def examples() -> list[Any]:
    if not FILE.is_file():
        return []
    found = json.loads(FILE.read_text("utf-8"), parse_float=Decimal)["examples"]
    return [pytest.param(example, id=example["id"]) for example in found]


def version(example: Example) -> int:
    """The newest version that the specification defines; the test is skipped where there is none."""
    defined = specification().operators.get(example["op"])
    if not defined:
        pytest.skip(f"the specification does not define {example['op']} yet")
    schema = schemas.schema("", example["op"], defined[-1].last)
    assert schema is not None
    return schema.since_version


# ---- reading --------------------------------------------------------------------------------------


def exact(written: Any) -> Fraction | float:
    """A number as it is written; the special values of IEEE 754 as floats."""
    if isinstance(written, str) and "/" in written:
        return Fraction(written.partition("/")[0]) / Fraction(written.partition("/")[2])
    if isinstance(written, str):
        return float(written)
    return Fraction(written)


def flat(written: Any) -> Iterator[Any]:
    if isinstance(written, list):
        for item in written:
            yield from flat(item)
    else:
        yield written


def shape(written: Any) -> tuple[int, ...]:
    if isinstance(written, dict):
        return tuple(written["shape"])
    return (len(written), *(shape(written[0]) if written else ())) if isinstance(written, list) else ()


def tensor(written: Any, element: str) -> Any:
    items = [] if isinstance(written, dict) else [exact(item) for item in flat(written)]
    kind = int if element.startswith(("int", "uint", "bool")) else float
    return np.array([kind(item) for item in items], dtype_of(element)).reshape(shape(written))


def attribute(written: Any, element: str, tensor_valued: bool) -> Any:
    if tensor_valued:
        return tensor(written, element)
    if isinstance(written, list):
        return tuple(written)
    value = exact(written)
    return int(value) if isinstance(written, int) else float(np.float32(float(value)))


def application(example: Example, element: str, **changed: int) -> Application:
    """The application that an example is of. Inputs go by their names where these are those of ONNX, else in order."""
    found = schemas.schema("", example["op"], version(example))
    assert found is not None
    formals = list(found.inputs[: len(example["inputs"])])
    names = list(example["inputs"])
    if {it.name for it in formals} == set(names):
        names = [it.name for it in formals]
    inputs = []
    for formal, name in zip(formals, names, strict=True):
        fixed = {it.removeprefix("tensor(").removesuffix(")") for it in formal.types}
        one = element if element in fixed else "int64" if "int64" in fixed else "bool"
        inputs.append(tensor(example["inputs"][name], one))
    attributes = {
        name: attribute(value, element, found.attributes[name].kind == "TENSOR")
        for name, value in (example["attributes"] | changed).items()
    }
    printed = example["outputs"] or example["computed_outputs"]
    return Application(
        example["op"], version(example), tuple(inputs), attributes, (True,) * (len(printed) - bool(changed) or 1)
    )


def elements(example: Example) -> Sequence[str]:
    return (example["dtype"],) if example["dtype"] else ELEMENTS[example["types"]]


# ---- comparing ------------------------------------------------------------------------------------


def agrees(found: Sequence[Any], written: Any, rounded: bool, loose: bool = False) -> bool:
    """Whether each number written is that of one of the tensors found."""
    if any(one.shape != shape(written) for one in found) and not (found[0].shape == () and shape(written) == (1,)):
        return False
    columns = [[one.reshape(-1)[at] for one in found] for at in range(found[0].size)]
    items = [] if isinstance(written, dict) else list(flat(written))
    return len(items) == len(columns) and all(
        any(_same(one, item, rounded, loose) for one in column) for column, item in zip(columns, items, strict=True)
    )


def _same(found: Any, written: Any, rounded: bool, loose: bool) -> bool:
    wanted = exact(written)
    if isinstance(wanted, float):
        same = bool(np.isnan(wanted) and np.isnan(found)) or bool(found == wanted)
        return same and (wanted != 0 or bool(np.signbit(found) == np.signbit(wanted)))
    if not np.isfinite(found):
        return False
    apart = abs(Fraction(float(found)) - wanted)
    if found.dtype.kind != "f":
        return apart == 0
    if loose and apart <= FLOAT_DIGITS * abs(wanted):
        return True
    if rounded and isinstance(written, Decimal):
        return apart <= min(Fraction(10) ** int(written.as_tuple().exponent), COARSEST)
    return apart <= 4 * Fraction(float(np.finfo(found.dtype).eps)) * abs(wanted)


def run(example: Example, **changed: int) -> list[tuple[Any, ...]]:
    """What the definition gives, by output, in each of the element types."""
    found = []
    for element in elements(example):
        done = apply(application(example, element, **changed))
        assert isinstance(done, Outputs), done
        found.append(done.values)
    return list(zip(*found, strict=True))


def passes(example: Example, outputs: Mapping[str, Any], rounded: bool, loose: bool = False, **changed: int) -> bool:
    found = run(example, **changed)
    return all(agrees(one, written, rounded, loose) for one, written in zip(found, outputs.values(), strict=True))


# ---- tests ----------------------------------------------------------------------------------------


@table("example", [it for it in examples() if it.values[0]["status"] == "recomputed"], absent=ABSENT)
def test_a_worked_example_is_what_the_definition_gives(example: Example) -> None:
    outputs = dict(example["outputs"])
    last = outputs.pop("Y2", None)
    rounded = example["outputs_rounded_in_source"]
    same = passes(example, outputs, rounded)
    assert same == (example["id"] not in {*APART, *DIGITS}), run(example)
    if example["id"] in DIGITS:
        assert passes(example, outputs, rounded, loose=True)
    if last is not None:
        assert passes(example, {"Y": last}, False, select_last_index=1)


@table("example", [it for it in examples() if it.values[0]["status"] == "erratum"], absent=ABSENT)
def test_an_erratum_is_found_as_one(example: Example) -> None:
    erratum = example["erratum"]
    rounded = example["outputs_rounded_in_source"]
    match erratum["kind"]:
        case "violates its own constraint":
            done = apply(application(example, elements(example)[0]))
            assert isinstance(done, Stuck)
            assert done.premise == "Where allowzero is 1, shape does not contain both 0 and -1."
        case "missing input" | "misprint":  # the inputs are repaired
            assert passes(example, example["outputs"], rounded)
        case _:
            assert not passes(example, example["outputs"], rounded)
            assert passes(example, erratum["corrected_outputs"], False)


@pytest.mark.parametrize("example", [it for it in examples() if it.values[0]["status"] == "no-number-in-source"])
def test_an_example_without_numbers_is_what_was_computed_independently(example: Example) -> None:
    assert passes(example, example["computed_outputs"], False)


def test_the_errata_are_the_known_ones() -> None:
    found = {it.id: it.values[0] for it in examples() if it.values[0]["status"] == "erratum"}
    assert {name: example["erratum"]["kind"] for name, example in found.items()} == ERRATA


def test_every_example_has_a_known_status() -> None:
    found = [it.values[0]["status"] for it in examples()]
    assert set(found) <= {"recomputed", "erratum", "no-number-in-source"}
    assert len(found) == 158
    assert {it.id for it in examples()} >= {*APART, *DIGITS}
