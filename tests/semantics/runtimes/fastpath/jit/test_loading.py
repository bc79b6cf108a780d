"""Compiled code is kept under what it follows from, and a cache that cannot be used is no error."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="native code needs the extra [jit]")
from sonnx.semantics.runtimes.fastpath.jit import loading


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "code.o"
    assert loading.kept(path) is None
    loading.keep(path, b"code")
    assert loading.kept(path) == b"code"
    assert [it.name for it in path.parent.iterdir()] == ["code.o"]


def test_a_broken_file_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "code.o"
    loading.keep(path, b"code")
    whole = path.read_bytes()
    for content in (b"", whole[:32], whole[:-1], whole[:-1] + b"f", b"\0" + whole[1:]):
        path.write_bytes(content)
        assert loading.kept(path) is None


def test_a_folder_that_cannot_be_used_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    path = tmp_path / "file" / "code.o"
    loading.keep(path, b"code")
    assert loading.kept(path) is None


@pytest.mark.skipif(os.name != "posix", reason="the permissions are those of POSIX")
def test_code_comes_from_a_folder_of_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "open" / "code.o"
    loading.keep(path, b"code")
    path.parent.chmod(0o777)
    assert loading.kept(path) is None
    path.unlink()
    loading.keep(path, b"code")
    assert not path.exists()


def test_several_may_keep_the_same(tmp_path: Path) -> None:
    path = tmp_path / "code.o"
    code = bytes(1 << 20)
    with ThreadPoolExecutor(8) as pool:
        seen = [it.result() for it in [pool.submit(_keep_and_look, path, code) for _ in range(32)]]
    assert set(seen) == {code}


def _keep_and_look(path: Path, code: bytes) -> bytes | None:
    loading.keep(path, code)
    return loading.kept(path)


def test_the_folder_is_the_usual_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SONNX_CACHE", str(tmp_path))
    assert loading.cache_folder() == tmp_path
    monkeypatch.delenv("SONNX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert loading.cache_folder() in (tmp_path / "sonnx", Path.home() / "Library/Caches/sonnx")


def test_code_that_is_kept_is_loaded_without_numba() -> None:
    loading.execute()
    code = (
        "import sys, time; from sonnx.semantics.runtimes.fastpath.jit.loading import execute\n"
        "start = time.process_time(); execute(); print(time.process_time() - start, "
        "'numba' in sys.modules, 'llvmlite' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, has_numba, has_llvm = done.stdout.split()
    assert has_numba == "False"
    assert has_llvm == str(sys.platform != "linux" or platform.machine() != "x86_64")
    assert float(seconds) < 1
