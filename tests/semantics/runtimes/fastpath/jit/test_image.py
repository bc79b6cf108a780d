"""Object code runs as an image without LLVM, or is said to be of another form."""

from __future__ import annotations

import ctypes
import platform
import sys

import pytest

pytest.importorskip("numba", reason="native code needs the extra [jit]")
import llvmlite.binding as llvm
from sonnx.semantics.runtimes.fastpath.jit.image import image_of, laid, read, written

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="images are made of ELF for x86-64 alone"
)

TEXT = """
@table = internal constant [2 x float] [float 2.0, float 3.0]
@count = common global i64 0
declare float @powf(float, float)
define float @f(float %x, i64 %k) {
  %place = getelementptr [2 x float], [2 x float]* @table, i64 0, i64 %k
  %power = load float, float* %place
  %result = call float @powf(float %x, float %power)
  %old = load i64, i64* @count
  ret float %result
}
"""


def _object(model: str) -> bytes:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(codemodel=model, reloc="static")
    code: bytes = machine.emit_object(llvm.parse_assembly(TEXT))
    return code


def test_an_image_is_called_where_it_is_laid() -> None:
    image = image_of(_object("large"), "f")
    assert image is not None
    assert "powf" in image.outside
    assert read(written(image)) == image
    for _ in range(2):
        address, held = laid(image)
        function = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float, ctypes.c_int64)(address)
        assert (function(1.5, 0), function(1.5, 1)) == (2.25, 3.375)
        assert len(held) == len(image.content)


def test_object_code_of_another_form_is_none() -> None:
    whole = _object("large")
    assert image_of(_object("small"), "f") is None  # distances of 32 bits
    assert image_of(whole, "g") is None
    assert image_of(b"\x7fELF\x01" + whole[5:], "f") is None
    assert image_of(whole[:18] + b"\xb7\0" + whole[20:], "f") is None  # for another processor
