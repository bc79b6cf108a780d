"""Collection without garbage collection: what it makes stays until the end, and is looked at no more.

The files that take longest come first, so that no process waits for one of them at the end.
"""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent
LONGEST = (
    "semantics/runtimes/fastpath/jit/test_loading.py",  # others find the code that it compiles
    "test_packaging.py",
    "proofs/test_forging.py",
    "checker/equivalence/proving/test_proving.py",
    "checker/certification/test_attacked_verdicts.py",
    "checker/definedness/test_definedness.py",
    "checker/certification/test_command.py",
    "checker/certification/test_shared_domains.py",
    "checker/certification/test_shared_models.py",
    "checker/rechecker/test_recheck_mutations.py",
    "proofs/test_theorems.py",
    "checker/certification/queries/test_scripts.py",
    "semantics/debugger/test_debug_command.py",
    "checker/rechecker/test_recheck.py",
    "checker/certification/test_batch.py",
    "checker/certification/test_function_definitions.py",
    "semantics/runtimes/test_backend.py",
    "proofs/test_command.py",
    "checker/certification/test_invalid_models.py",
    "checker/certification/test_default_verdict.py",
    "checker/certification/test_examples.py",
    "checker/rechecker/test_forged_certificates.py",
    "checker/equivalence/comparing/test_verdicts.py",
    "semantics/debugger/tui/test_face.py",
    "semantics/machine/validation/test_validating.py",
    "semantics/machine/reference/test_agreement.py",
    "test_layers.py",
    "semantics/operators/compiled/test_exact.py",
    "spec/test_cli.py",
    "proofs/test_findings.py",
    "semantics/debugger/test_terminal.py",
    "semantics/operators/symbolic/test_symbolic.py",
)
"""The files that take five seconds and more, or nearly."""


def pytest_configure() -> None:
    gc.disable()
    # how long an example takes on a busy machine is no matter of the claim
    settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("unhurried")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {ROOT / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(LONGEST)))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
