"""Models for tests of the debugger, as text, and sessions on them driven by command lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser
from sonnx.semantics import Schedule, load_proto
from sonnx.semantics.debugger.commands.table import execute
from sonnx.semantics.debugger.display.answers import Answer, Stop
from sonnx.semantics.debugger.display.rendering import lines
from sonnx.semantics.debugger.session.opening import opened_model
from sonnx.semantics.debugger.session.session import Session

NESTED = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
nested (float[2] x, bool c, int64 n) => (float[2] y, float[k, 2] h)
{
  a = Add (x, x)
  b = local.Twice (a)
  d = local.Twice (b)
  e = If (c) <then_branch = then_graph () => (float[2] te) { te = Neg (d) },
              else_branch = else_graph () => (float[2] ee) { e1 = Abs (d)  ee = Neg (e1) }>
  y, h = Loop (n, , e) <body = body (int64 i, bool go, float[2] s) => (bool go2, float[2] s2, float[2] o) {
    go2 = Identity (go)
    s2 = Add (s, x)
    o = local.Twice (s2)
  }>
}
<domain: "local", opset_import: ["" : 18]>
Twice (v) => (w)
{
  t = Add (v, v)
  w = Identity (t)
}
"""
"""Calls one after the other, a branch, and a Loop that calls a function in its body; 3 runs where n is 3."""

GIVEN: Mapping[str, Any] = {"x": np.array([1.0, -2.0], np.float32), "c": np.array(False), "n": np.array(3)}


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def session(
    proto: onnx.ModelProto | str, inputs: Mapping[str, Any], schedule: Schedule | None = None, **options: Any
) -> Session:
    made = model(proto) if isinstance(proto, str) else proto
    return opened_model(load_proto(made), inputs, schedule or Schedule(), **options)


def nested(**options: Any) -> Session:
    return session(NESTED, GIVEN, **options)


def answer(found: Session, *commands: str) -> tuple[Session, Answer]:
    """The session after the commands, and the answer to the last one."""
    outcome = None
    for command in commands:
        outcome = execute(found, command)
        found = outcome.session
    assert outcome is not None
    return found, outcome.answer


def stopped(found: Session, *commands: str) -> tuple[Session, Stop]:
    found, got = answer(found, *commands)
    assert isinstance(got, Stop), got
    return found, got


def text(found: Session, *commands: str) -> str:
    """What the terminal shows for the last command."""
    return "\n".join(lines(answer(found, *commands)[1]))
