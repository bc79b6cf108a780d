"""All checks in turn: lint, types of the installed packages, tests. The exit code is the worst of the three.

Run it with the Python that sonnx is installed for. Further arguments go to pytest. Three processes test on two cores:
many tests wait for processes that they have started.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("sonnx.spec", "sonnx.semantics", "sonnx.checker", "sonnx.proofs")

CHECKS = {
    "lint": ["ruff", "check", "."],
    "types": ["mypy", *(word for package in PACKAGES for word in ("-p", package))],
    "tests": ["pytest", "-n", "3", *sys.argv[1:]],
}


def main() -> int:
    codes = {}
    for name, command in CHECKS.items():
        sys.stdout.write(f"== {name}: {' '.join(command)}\n")
        sys.stdout.flush()
        codes[name] = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
        if codes[name] and name != "tests":
            sys.stdout.write(f"== {name}: FAILED\n")
    return max(codes.values())


if __name__ == "__main__":
    sys.exit(main())
