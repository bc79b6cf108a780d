"""Judgements about runtimes: results compared with what the specification allows, reports, known deviations.

It runs engines through `sonnx.semantics.runtimes.engines` and knows nothing of certification.
"""
