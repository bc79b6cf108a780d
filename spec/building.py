"""The step of the package's build besides copying files: it parses the texts ahead (`parsed`).

Named in pyproject.toml; setuptools loads this file from the tree, where the package `sonnx` is not importable yet.
"""

from __future__ import annotations

import shutil
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

from setuptools.command.build_py import build_py  # type: ignore[import-untyped]

TREE = Path(__file__).parent


class BuildParsed(build_py):  # type: ignore[misc]
    """Copies the package, then writes what its texts parse to beside them; in place for an editable install.

    What an earlier build has left is removed: with a module too many, no process would take what is parsed ahead.
    """

    def run(self) -> None:
        """The build. Raises SpecError when a text contains a mistake: such a package is not built."""
        if not self.editable_mode:
            shutil.rmtree(Path(self.build_lib, "sonnx"), ignore_errors=True)  # modules of an earlier build
        super().run()
        folder = TREE if self.editable_mode else Path(self.build_lib, "sonnx", "spec")
        parsed = _layer("parsed")
        parsed.write(parsed.read_texts(), folder)


def _layer(name: str) -> ModuleType:
    """A module of this layer, imported from the tree under the name that it has when installed."""
    if "sonnx" not in sys.modules:
        root = ModuleSpec("sonnx", None, is_package=True)
        sys.modules["sonnx"] = module_from_spec(root)
    sys.modules["sonnx"].__path__ = [str(TREE.parent)]
    return import_module(f"sonnx.spec.{name}")
