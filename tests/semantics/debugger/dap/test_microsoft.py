"""Microsoft's own test client drives a session, where node, npm and the package are found."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dap_client import Json
from npm_packages import node, node_modules

SCRIPT = Path(__file__).parents[3] / "support" / "dap_microsoft.js"


@pytest.mark.campaign
def test_microsoft_s_client_drives_a_session(
    nested: Json, strange: Json, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    modules = node_modules(tmp_path_factory)
    shim = tmp_path / "adapter.py"
    shim.write_text("import sys\nfrom sonnx.spec.cli import main\nsys.argv[1:] = ['dap']\nmain()\n")
    listing = tmp_path / "nested.lst"
    launch = {**nested, "listing": str(listing), "stopOnEntry": False}
    asked = {"launch": launch, "listing": str(listing), "breakpoint": 16, "body": 30, "tensor": "s", "watched": "e"}
    command = [node(), str(SCRIPT), str(modules), sys.executable, str(shim), json.dumps({**asked, "strange": strange})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["lines"] == [24, 16, 30, 30, 35]
    assert seen["frames"][0][1] == 30 and seen["frames"][1][1] == 24
    assert seen["scopes"][0] == "Node inputs" and seen["variables"][:2] == ["s", "x"]
    assert base64.b64decode(seen["memory"]) == np.array([-8, -16], "<f4").tobytes()
    assert "noSuchRequest" in seen["refused"]
    assert seen["accessTypes"] == ["write", "read", "readWrite"] and "must be an address" in seen["malformed"]
    assert [it[:2] for it in seen["watched"]] == [["data breakpoint", True]] * 3
    assert [it[2] for it in seen["watched"]] == [24, 23, 24]  # before the read, before the write, after the write
    assert seen["fault"] == ["exception", "nan"]
