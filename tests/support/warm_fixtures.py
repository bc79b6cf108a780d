"""Fixtures of folders whose tests certify many models: their conftest takes both."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest
import sonnx.checker.rechecker.inference as rechecker_inference
from sonnx.semantics.facts.inference import model as claims
from warm_inference import RECHECKERS_WORKER, WORKER, Server, asked


@pytest.fixture(scope="session")
def servers() -> Iterator[list[tuple[ModuleType, Server]]]:
    """One server for each worker of shape inference."""
    made = [(claims, Server(WORKER)), (rechecker_inference, Server(RECHECKERS_WORKER))]
    yield made
    for _, server in made:
        server.close()


@pytest.fixture(scope="module", autouse=True)
def shape_inference_is_warm(servers: list[tuple[ModuleType, Server]]) -> Iterator[None]:
    """The processes that ask ONNX are forked, not started: see `warm_inference`. Tests of other folders start them."""
    with asked(*servers):
        yield
