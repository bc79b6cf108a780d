"""The solver and the SMT-LIB text that it reads: queries named, limited, seeded, the same bytes every time.

`solver` is the only module that imports z3; `prover` asks it what follows from facts. It knows no rules and no models.
"""
