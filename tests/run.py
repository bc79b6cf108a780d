"""All checks in turn: lint, types of the installed packages, tests. The exit code is the worst of them.

Run it with the Python that sonnx is installed for. `--fast`: lint, and the tests that one runs between edits. Further
arguments go to pytest. Three processes test on two cores: many tests wait for processes that they have started.
"""

from __future__ import annotations

import subprocess
import sys
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
    "checker/rechecker/test_recheck.py",
    "proofs/test_models.py",
)
"""One file or folder of each stage, without long proofs, sweeps and suites."""


def checks(options: list[str]) -> dict[str, list[str]]:
    """The commands by name, each a module with its arguments."""
    lint = ["ruff", "check", "."]
    if "--fast" in options:
        others = [option for option in options if option != "--fast"]
        return {"lint": lint, "tests": ["pytest", "-q", "-n", "3", *(f"tests/{path}" for path in FAST), *others]}
    types = ["mypy", *(word for package in PACKAGES for word in ("-p", package))]
    return {"lint": lint, "types": types, "tests": ["pytest", "-n", "3", *options]}


def main() -> int:
    codes = {}
    for name, command in checks(sys.argv[1:]).items():
        sys.stdout.write(f"== {name}: {' '.join(command)}\n")
        sys.stdout.flush()
        codes[name] = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
        if codes[name] and name != "tests":
            sys.stdout.write(f"== {name}: FAILED\n")
    return max(codes.values())


if __name__ == "__main__":
    sys.exit(main())
