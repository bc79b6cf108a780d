"""The ledger: what runtimes are known to do otherwise than the specification says, as cases that can be executed.

The cases are data (TOML) beside `ledger`, which reads them; `standing` says how a result stands to them. It knows no
engine and no report.
"""
