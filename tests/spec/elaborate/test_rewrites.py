"""Rewrites: what the left side binds, which element types it admits, and that a side is a definition like any other."""

from __future__ import annotations

import pytest
from sonnx.spec.language.parse import parse
from sonnx.spec.language.printer import print_declaration
from sonnx.spec.language.syntax import Rewrite
from sonnx.spec.library import AddedTextError, Specification, extended, own_specification

PAD = """
rewrite PadOfConv (X: T[n, c, d...], W: T[m, g, K...], B?: T[m], v!: T[], p!: int64[z]) -> Y: T "A sentence."
  source "a test"
  from P = Pad@13(X, p, v)
       Y = Conv@11(P, W, B; pads = q, group = h)
  to   Y = Conv@11(X, W, B; pads = (if given q then q else repeat(0, 2 * len(d))), group = h)
  when v[] = 0 "A condition."
  in reals where m > 0 "An assumption."
"""


def text_of(body: str) -> Specification:
    return extended(own_specification(), {"added.sonnx": body})


def test_the_left_side_binds_attributes_as_its_schemas_have_them() -> None:
    rule = text_of(PAD).rules["PadOfConv"]
    assert [(it.name, it.mark, it.kind) for it in rule.left.attributes] == [("q", "?", "ints"), ("h", "", "int")]
    assert rule.right.attributes == rule.left.attributes
    assert rule.stored == ("v", "p")
    assert [it.id for it in rule.left.statements if it.kind == "require"] == ["when1", "where1"]


def test_the_types_are_those_that_every_operator_of_the_left_side_admits() -> None:
    (types,) = text_of(PAD).rules["PadOfConv"].left.types
    assert types.allowed == ("double", "float", "float16")


def test_what_is_passed_on_may_be_absent() -> None:
    rule = text_of(PAD).rules["PadOfConv"]
    last = next(it for it in rule.left.statements if it.kind == "let" and it.binds[0].name.startswith("Y"))
    kinds = {label: part.head for label, part in zip(last.body.labels, last.body.parts, strict=True) if label}
    assert kinds == {("pads",): "ite", ("group",): "variable"}


@pytest.mark.parametrize(
    ("claim", "stored"), [("exactly", "!"), ("allowed", ""), ("in reals", "!"), ('never "A reason."', "")]
)
def test_what_is_printed_reads_the_same(claim: str, stored: str) -> None:
    text = (
        f'rewrite R (X: T[d...], s{stored}: int64[n]) -> (Y: T, Z: T) "A sentence." source "a test"\n'
        f'let f(i: Int) = i from A = Reshape@14(X, s) Y, Z = Dropout@13(A) to Y = X Z = X when n > 0 "C." {claim}'
    )
    (rule,) = parse(text, "t").declarations
    assert isinstance(rule, Rewrite)
    assert parse(print_declaration(rule), "t").declarations == (rule,)


def test_a_rule_is_added_once() -> None:
    name = next(iter(own_specification().rewrites))
    with pytest.raises(AddedTextError, match="twice"):
        text_of(PAD.replace("PadOfConv", name))


def test_an_added_rule_applies_operators_that_the_text_declares() -> None:
    """com.microsoft::FusedMatMul has no schema of ONNX: the text that the rule is added to declares it."""
    rule = own_specification().rewrites["MatMulTransposed"]
    added = text_of(print_declaration(rule).replace(rule.name, "Added", 1)).rules["Added"]
    assert added.right.outputs == own_specification().rules[rule.name].right.outputs


def test_the_same_rule_is_read_from_what_was_parsed_ahead() -> None:
    for name, rule in own_specification().rules.items():
        assert rule.name == name
        assert rule.left.inputs == own_specification().rewrites[name].inputs
