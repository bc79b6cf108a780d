"""Judgements about models: certify a model, recheck a certificate.

    from sonnx.checker import certify, recheck

    report = certify("model.onnx")                  # or rules="onnx", rules=["sonnx", "sonnx-operators"]
    report.verdict                                  # Verdict.CONFORMS, VIOLATES or UNDECIDED
    report.conditions, report.obligations           # for which sizes, with how many obligations on data
    [rule.id for rule in report.rules if rule.verdict == "violated"]
    [(finding.where, finding.message) for rule in report.rules for finding in rule.findings]

    from sonnx.checker.certification.formats import render
    render(report, "json")                          # "sarif", "junit", "html"; a notebook shows the page

    from sonnx.checker.certification.certificate import certificate, seal
    sealed = seal(certificate(certify("model.onnx", witnesses=True)))    # bytes; write them to a file
    recheck("model.json", "model.onnx").outcome     # Outcome.CONFIRMED, REFUTED or NOT_CHECKED

Names are loaded when first used, so that a recheck imports neither the certifier nor a solver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .certification.certifier import certify
    from .certification.report import Finding, Report, RuleResult, RuleSetResult, RuleVerdict, Verdict
    from .rechecker import recheck

__all__ = ["Finding", "Report", "RuleResult", "RuleSetResult", "RuleVerdict", "Verdict", "certify", "recheck"]

_HOMES = {"certify": "certification.certifier", "recheck": "rechecker"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES.get(name, 'certification.report')}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
