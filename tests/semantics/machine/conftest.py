from __future__ import annotations

from types import ModuleType

import machine_models
import pytest


@pytest.fixture(scope="session")
def models() -> ModuleType:
    """Models that are built here, and a plain meaning for their operators."""
    return machine_models
