"""The formats of a report: text, JSON, SARIF, HTML with drawings."""
