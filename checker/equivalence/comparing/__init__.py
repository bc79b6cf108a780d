"""Do two models mean the same? Translation validation: one table of the values of both, normal forms, a search.

`comparison.compare` is the whole; `table` holds each value once, `entering` brings a model into it, `normalizing`
rewrites by rules, `unifying` finds where two values part, `islands` has such a place proved alone, `searching` runs
both models on the machine, `interface` says how inputs and outputs correspond. `report` and `drawing` show the outcome.
The package must not know how a rule is proved, and states no rule of its own but those of part 3 (a branch whose
condition is known) and evaluation.
"""
