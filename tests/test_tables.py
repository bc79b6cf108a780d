"""A test over a table tries every case and names those that fail."""

import pytest
from tables import table


def test_every_case_is_tried_and_those_that_fail_are_named() -> None:
    tried = []

    @table("b", [1, 2], ids=["one", "two"])
    @table(("a", "c"), [(1, "x"), pytest.param(2, "y", id="named")])
    def equal(a: int, b: int, c: str, seen: list[int]) -> None:
        seen.append(a)
        assert a == b

    with pytest.raises(ExceptionGroup, match="2 of 2 cases of equal") as caught:
        equal(seen=tried)
    assert tried == [1, 2, 1, 2]
    first, second = caught.value.exceptions
    assert (first.__notes__, second.__notes__) == (["case 0: one"], ["case 1: two"])
    assert isinstance(first, ExceptionGroup)
    assert first.exceptions[0].__notes__ == ["case 1: named"]


def test_a_few_cases_are_tried_on_every_run_and_the_others_in_the_campaign() -> None:
    tried = []

    @table("a", range(9), few=2)
    def seen(a: int) -> None:
        tried.append(a)

    (mark,) = seen.pytestmark
    sample, rest = mark.args[1]
    assert [it.name for it in rest.marks] == ["campaign"] and not sample.marks
    seen(part=sample.values[0])
    assert len(tried) == 2
    seen(part=rest.values[0])
    assert sorted(tried) == [*range(9)]


def test_a_table_without_cases_or_with_marks_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="without a case"):
        table("a", [])
    with pytest.raises(TypeError, match="no marks"):
        table("a", [pytest.param(1, marks=pytest.mark.campaign)])
