"""All checks: lint, types of the installed packages, tests. The exit code is the worst of them.

Run it with the Python that sonnx is installed for. `--fast`: lint, and the tests that one runs between edits. Further
arguments go to pytest. Types are checked beside the tests, and told behind them. Two processes test: each one more
reads all tests, and makes anew what tests share.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("sonnx.spec", "sonnx.semantics", "sonnx.checker", "sonnx.proofs")
FAST = (
    "test_architecture.py",
    "spec/language",
    "spec/test_parsed.py",
    "semantics/facts",
    "semantics/formulas",
    "semantics/model/test_graph.py",
    "semantics/machine",
    "semantics/operators/test_shape.py",
    "checker/smt",
    "checker/certification/test_default_verdict.py",
    "checker/certification/test_bodies.py",
    "checker/rechecker/test_certificate.py",
    "checker/rechecker/test_recheck_numbers.py",
    "proofs/test_models.py",
)
"""One file or folder of each stage, without long proofs, sweeps and suites."""


TESTS = ["pytest", "-n", "2", "--dist", "loadscope", "--no-loadscope-reorder"]
"""The tests of a file run in one process, and share what they have made; in the order of conftest.py."""


def checks(options: list[str]) -> dict[str, list[str]]:
    """The commands by name, each a module with its arguments."""
    lint = ["ruff", "check", "."]
    if "--fast" in options:
        others = [option for option in options if option != "--fast"]
        return {"lint": lint, "tests": [*TESTS, "-q", *(f"tests/{path}" for path in FAST), *others]}
    types = ["mypy", *(word for package in PACKAGES for word in ("-p", package))]
    return {"lint": lint, "types": types, "tests": [*TESTS, *options]}


def tell(name: str, text: str) -> None:
    sys.stdout.write(f"== {name}: {text}\n")
    sys.stdout.flush()


def main() -> int:
    commands = {name: [sys.executable, "-m", *command] for name, command in checks(sys.argv[1:]).items()}
    codes = {}
    with tempfile.TemporaryFile() as said:
        types = None
        if "types" in commands:
            types = subprocess.Popen(commands["types"], cwd=ROOT, stdout=said, stderr=subprocess.STDOUT)
        for name in ("lint", "tests"):
            tell(name, " ".join(commands[name][2:]))
            codes[name] = subprocess.run(commands[name], cwd=ROOT, check=False).returncode
        if types is not None:
            codes["types"] = types.wait()
            tell("types", " ".join(commands["types"][2:]))
            said.seek(0)
            sys.stdout.write(said.read().decode(errors="replace"))
    for name, code in codes.items():
        if code:
            tell(name, "FAILED")
    return max(codes.values())


if __name__ == "__main__":
    sys.exit(main())
