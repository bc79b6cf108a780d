"""The formats of a report: text, JSON, SARIF, HTML with drawings.

They render `report` and decide nothing.
"""
