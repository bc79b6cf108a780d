"""Packages of npm for the campaign: from a folder that is named, or installed for the run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = (
    "@types/node@20.19.43",
    "@types/vscode@1.80.0",
    "@vscode/debugadapter-testsupport@1.68.0",
    "@vscode/vsce@3.9.2",
    "typescript@5.9.3",
    "vscode-oniguruma@2.0.1",
    "vscode-textmate@9.3.2",
)


def node() -> str:
    """The program node; skips the test where there is none."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    return found


def node_modules(factory: pytest.TempPathFactory) -> Path:
    """A folder node_modules with the packages: the one of SONNX_NODE_MODULES, else installed once for the run.
    Skips the test where npm is not installed or cannot fetch them."""
    node()
    folder = factory.getbasetemp() / "npm"
    stated = os.environ.get("SONNX_NODE_MODULES")
    if stated:
        return Path(stated)
    modules, npm = folder / "node_modules", shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    if not modules.is_dir():
        flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
        command = [npm, "install", "--prefix", str(folder), *flags, *PACKAGES]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("npm did not install the packages within 300 seconds")
        if done.returncode:
            pytest.skip(f"npm cannot install the packages: {done.stderr.strip()[:300]}")
    return modules
