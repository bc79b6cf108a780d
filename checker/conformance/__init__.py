"""Conformance reports: how far engines' results on suites of cases are what the specification allows."""
