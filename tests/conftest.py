"""Collection without garbage collection: what it makes stays until the end, and is looked at no more."""

from __future__ import annotations

import gc

import pytest


def pytest_configure() -> None:
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
