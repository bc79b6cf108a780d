"""Rewrite rules proved from the operators' texts, or refuted by an input.

`judging.judge` decides a rule: each instance of it is evaluated by the smt interpretation with elements as terms
(`sides`), and what must hold is asked of the solver (`asking`, `equality`). `axioms` lists what is taken for equal and
how each such law is shown; `witness` searches the machine for an input on which the sides differ. It applies no rule.
"""
