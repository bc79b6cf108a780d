"""The meaning of formulas over one graph: evaluated directly, or as ground terms for a solver.

`reading` is the fold that each meaning is a table of; `terms` are solver-neutral. It reads facts and must not know
where they come from, nor any solver.
"""
