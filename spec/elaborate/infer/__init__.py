"""The sort of an expression: one fold over `Expr`, its rules by subject.

`expressions.infer` is the entry. It writes mistakes to a ledger of `scope` and decides nothing about declarations.
"""
