"""Conformance reports: how far engines' results on suites of cases are what the specification allows.

It offers `running` and the reports. It judges with `differential` and never by a tolerance.
"""
