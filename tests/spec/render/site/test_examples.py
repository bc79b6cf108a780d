"""The examples as data: where they fit, and that those of the package fit somewhere."""

from __future__ import annotations

import pytest
from sonnx.spec.elaborate.declared import signatures_of
from sonnx.spec.elaborate.schema import signatures
from sonnx.spec.library import specification
from sonnx.spec.render.site.examples import Example, executor, parse_examples, read_examples
from tables import table

EXAMPLES = read_examples()


def fitting(text: str) -> list[int]:
    (example,) = parse_examples(text)
    return [signature.version for signature in signatures()[example.operator] if example.fits(signature)]


def test_an_example_fits_where_the_operator_has_what_it_names() -> None:
    assert fitting("[[Clip]]\nsays = 's'\ninput = {float = [1.0]}\nmin = 0.5") == [1, 6]
    assert fitting("[[Clip]]\nsays = 's'\ninput = {float = [1.0]}\nmin = {float = 0.5}") == [11, 12, 13]
    assert fitting("[[Split]]\nsays = 's'\ninput = {float = [1.0]}\nnum_outputs = 1") == [18]


def test_an_example_without_a_required_input_or_attribute_fits_nowhere() -> None:
    assert fitting("[[Add]]\nsays = 's'\nA = {float = [1.0]}") == []
    assert fitting("[[Cast]]\nsays = 's'\ninput = {float = [1.0]}") == []


def test_versions_and_outputs_limit_an_example() -> None:
    assert fitting("[[MaxPool]]\nsays = 's'\nX = {float = [[[1]]]}\nkernel_shape = [1]\noutputs = 2")[0] == 8
    assert fitting("[[Relu]]\nsays = 's'\nX = {float = [1]}\nversions = [13, 99]") == [13, 14]


def test_an_example_that_says_nothing_is_an_error() -> None:
    with pytest.raises(KeyError):
        parse_examples("[[Relu]]\nX = {float = [1]}")


@table("example", EXAMPLES, ids=lambda e: f"{e.operator}: {e.says}")
def test_an_example_of_the_package_fits_a_version_of_its_operator(example: Example) -> None:
    versions = signatures_of(specification().operators[example.operator])
    assert any(example.fits(signature) for signature in versions)


def test_the_package_offers_a_function_that_executes_examples() -> None:
    execute = executor()
    assert execute is not None and execute.__module__ == "sonnx.semantics.machine.example_runs"
