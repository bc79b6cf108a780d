"""Definedness of operators: each definition proved, refuted or not proved, for any sizes at up to 4 axes.

It offers `proving` and the rows of the table `spec/definedness.tsv`. It knows no model.
"""
