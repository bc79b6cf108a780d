"""Definedness of operators: each definition proved, refuted or not proved, for any sizes.

Where the lemmas about lists of any length reach, which `induction` proves, it is shown for every number of axes,
else at up to 4 axes.

It offers `proving` and the rows of the table `definedness.tsv`, which `sonnx spec check` counts. It knows no model.
"""
