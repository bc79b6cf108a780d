"""The native function: compiled once, kept in the user's cache folder, and loaded from there.

What is kept is found by a digest of everything that it follows from: the texts of the modules, the versions of Python,
Numba and llvmlite, and the processor. A folder that cannot be used, or holds something else, is no error: the function
is compiled again. Code is taken only from a folder that no one else may write. Numba is imported to compile only, and
llvmlite with it where the code is kept as an image; elsewhere it is kept as object code, which LLVM loads.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Final

from .crew import Execute
from .image import image_of, laid, read, written
from .processor import IDENTITY

_SOURCES: Final = ("operations.py", "processor.py", "vectors.py", "routines.py", "image.py", "loading.py")
_NAME: Final = "sonnx_execute"
_OBJECT, _IMAGE = b"o", b"i"
_LOCK: Final = Lock()
_HELD: Final[list[object]] = []
"""What must live as long as the code."""


def execute() -> Execute:
    """The function `routines.execute`, in native code."""
    with _LOCK:
        return _loaded()


@cache
def _loaded() -> Execute:
    path = cache_folder() / f"{digest()}.o"
    code = kept(path)
    if code is None:
        code = _compiled()
        keep(path, code)
    address, held = _by_llvm(code[1:]) if code[:1] == _OBJECT else laid(read(code[1:]))
    _HELD.append(held)
    types = (ctypes.c_void_p, ctypes.c_void_p, *(ctypes.c_int64,) * 8)
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(address)

    def run(*arguments: int) -> None:
        result, error = ctypes.c_int64(), ctypes.c_int64()  # Numba's convention; the function raises nothing
        function(ctypes.addressof(result), ctypes.addressof(error), *arguments)

    return run


def _by_llvm(code: bytes) -> tuple[int, object]:
    """The address of the function in object code, and what must live as long as it is called."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(_NAME)
    return address, engine


def _compiled() -> bytes:
    """The code, by Numba: an image, or object code."""
    import llvmlite.binding as llvm
    import numba

    from . import routines

    function = numba.njit(nogil=True, error_model="numpy", **routines.OPTIONS)(routines.execute)
    signature = (numba.int64,) * 8
    # Each function would be optimised alone, and again in all that call it: so it is done once, for the whole.
    level, numba.config.OPT = numba.config.OPT, type(numba.config.OPT)(0)
    try:
        function.compile(signature)
    finally:
        numba.config.OPT = level
    made = function.overloads[signature]
    library = made.library
    module = llvm.parse_assembly(str(library._final_module))
    module.get_function(made.fndesc.llvm_func_name).name = _NAME
    codegen = library.codegen
    for options in ({"loop_vectorize": codegen._loopvect, "opt": codegen._opt_level, "cost": "cheap"}, {}):
        passes, builder = codegen._module_pass_manager(**options)
        passes.run(module, builder)
    code: bytes = codegen._tm.emit_object(module)
    image = image_of(code, _NAME)
    return _OBJECT + code if image is None else _IMAGE + written(image)


# ---- The cache --------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where code is kept: SONNX_CACHE, or the folder `sonnx` in the user's folder for caches."""
    stated = os.environ.get("SONNX_CACHE")
    if stated:
        return Path(stated)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "sonnx"
    usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or usual) / "sonnx"


def digest() -> str:
    """What the code follows from."""
    text = hashlib.sha256(f"{sys.version} {version('numba')} {version('llvmlite')} {IDENTITY}".encode())
    for name in _SOURCES:
        text.update(Path(__file__).with_name(name).read_bytes())
    return text.hexdigest()[:32]


def kept(path: Path) -> bytes | None:
    """The code in a file, None where there is none that this program wrote."""
    try:
        if not _private(path.parent):
            return None
        content = path.read_bytes()
    except OSError:
        return None
    code = content[32:]
    return code if code and hashlib.sha256(code).digest() == content[:32] else None


def keep(path: Path, code: bytes) -> None:
    """Writes the code with its digest, at once or not at all; several processes may do so."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(path.parent):
            return
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        Path(name).replace(path)
    except OSError:
        return


def _private(folder: Path) -> bool:
    """True where nobody but the user can write a folder."""
    if os.name != "posix":
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022
