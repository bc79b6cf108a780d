"""nvim-dap drives a session with the configuration that EDITORS.md gives, where Neovim and nvim-dap are found.

SONNX_NVIM_DAP names the folder of nvim-dap (tried: version 0.6.0 with Neovim 0.7.2).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from debugger_models import NESTED, model

ROOT = Path(__file__).parents[4]
DRIVER = ROOT / "tests" / "support" / "dap_neovim.lua"


@pytest.mark.campaign
def test_nvim_dap_drives_a_session_with_the_documented_configuration(tmp_path: Path) -> None:
    plugin, editor = os.environ.get("SONNX_NVIM_DAP", ""), shutil.which("nvim")
    if editor is None or not plugin:
        pytest.skip("nvim and SONNX_NVIM_DAP, the folder of nvim-dap, are needed")
    text = (ROOT / "semantics" / "debugger" / "EDITORS.md").read_text(encoding="ascii")
    (configuration,) = re.findall(r"^```lua\n(.*?)^```", text, re.M | re.S)
    command = tmp_path / "bin" / "sonnx"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c 'from sonnx.spec.cli import main; main()' \"$@\"\n")
    command.chmod(0o755)
    (tmp_path / "init.lua").write_text(f"vim.opt.runtimepath:append([[{plugin}]])\n{configuration}")
    path = tmp_path / "nested.onnx"
    onnx.save(model(NESTED), path)
    listing = tmp_path / "nested.onnx.sonnx.lst"
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    environment |= {"SONNX_SEEN": str(tmp_path / "seen"), "SONNX_LINE": "16"}
    subprocess.run([command, "debug", path, "--random", "0", "-e", f"listing {listing}", "--batch"], check=True)
    arguments = ["--headless", "-u", str(tmp_path / "init.lua"), str(listing), "-c", f"luafile {DRIVER}"]
    subprocess.run([editor, *arguments], env=environment, timeout=300, check=False, capture_output=True)
    seen = (tmp_path / "seen").read_text().splitlines()
    assert seen[:3] == ["filetype sonnxlisting", "entry 9", "continue 16"], seen
    assert seen[3].startswith("value float[2] [")
    assert seen[4:] == ["step_over 24", "step_back 16", "end 35", "start 9", "over"]
