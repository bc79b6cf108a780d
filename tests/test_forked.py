"""Tests in several processes are reported as tests in one are, and what ends a process is a failure."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sampling import left

SUPPORT = Path(__file__).parent / "support"
SUITE = {
    "test_a.py": """
import os, warnings, pytest
def test_passes(tmp_path, capfd):
    print("one")
    os.system("echo two")
    assert capfd.readouterr().out == "one\\ntwo\\n" and (tmp_path / "a").write_text("a")
def test_fails():
    print("this was printed")
    assert 1 == 2
@pytest.mark.skip(reason="not here")
def test_skipped(): ...
def test_warns():
    warnings.warn("be careful")
""",
    "test_b.py": """
import pytest
@pytest.fixture
def broken():
    yield
    raise ValueError("at the end")
def test_ends_badly(broken): ...
@pytest.mark.parametrize("n", range(20))
def test_of_many(n, tmp_path): ...
""",
}


def told(folder: Path, **files: str) -> tuple[int, str]:
    """The exit code and what is written of a suite in two processes."""
    for name, text in {**SUITE, **files}.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "forked", "-p", "no:hypothesispytest", "--processes", "2", "-ra"]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def test_what_two_processes_find_is_reported_once(tmp_path: Path) -> None:
    code, text = told(tmp_path)
    assert code == 1
    assert re.search(r"1 failed, 23 passed, 1 skipped, 1 warning, 1 error", text)
    for part in ("assert 1 == 2", "this was printed", "not here", "be careful", "at the end", "[100%]"):
        assert part in text, text


@pytest.mark.parametrize(
    ("body", "said"),
    [("os._exit(0)", "a process ended in test_c.py::test_c"), left(("raise SystemExit", "SystemExit"))],
)
def test_a_process_that_ends_before_its_tests_do_is_a_failure(body: str, said: str, tmp_path: Path) -> None:
    code, text = told(tmp_path, **{"test_c.py": f"import os\ndef test_c():\n    {body}\n"})
    assert code != 0 and said in text, text
