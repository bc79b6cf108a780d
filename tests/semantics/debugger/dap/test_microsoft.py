"""Microsoft's own test client drives a session, where node and the package are found.

SONNX_NODE_MODULES names the folder node_modules that has @vscode/debugadapter-testsupport (tried with 1.68.0):
npm install @vscode/debugadapter-testsupport@1.68.0
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dap_client import Json

SCRIPT = Path(__file__).parents[3] / "support" / "dap_microsoft.js"
PACKAGE = "@vscode/debugadapter-testsupport"


def test_microsoft_s_client_drives_a_session(nested: Json, tmp_path: Path) -> None:
    modules, node = os.environ.get("SONNX_NODE_MODULES", ""), shutil.which("node")
    if node is None or not (Path(modules) / PACKAGE).is_dir() or not modules:
        pytest.skip(f"node and SONNX_NODE_MODULES, a folder with {PACKAGE}, are needed")
    shim = tmp_path / "adapter.py"
    shim.write_text("import sys\nfrom sonnx.spec.cli import main\nsys.argv[1:] = ['dap']\nmain()\n")
    listing = tmp_path / "nested.lst"
    launch = {**nested, "listing": str(listing), "stopOnEntry": False}
    asked = {"launch": launch, "listing": str(listing), "breakpoint": 16, "body": 30, "tensor": "s"}
    command = [node, str(SCRIPT), modules, sys.executable, str(shim), json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["lines"] == [24, 16, 30, 35]
    assert seen["frames"][0][1] == 30 and seen["frames"][1][1] == 24
    assert seen["scopes"][0] == "Node inputs" and seen["variables"][:2] == ["s", "x"]
    assert base64.b64decode(seen["memory"]) == np.array([-8, -16], "<f4").tobytes()
    assert "noSuchRequest" in seen["refused"]
