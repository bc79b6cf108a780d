"""Definedness of operators: each definition proved, refuted or not proved, for any sizes at up to 4 axes.

It offers `proving` and the rows of the table `definedness.tsv`, which `sonnx spec check` counts. It knows no model.
"""
