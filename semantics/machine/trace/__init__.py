"""The trace of a run: written as a chain of hashes, read again, single steps executed again.

It offers `writing` and `replay`; `format` holds what both agree on.
"""
