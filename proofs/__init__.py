"""Proofs: theorems about the specification, for all graphs, checked by machine from the text that is executed."""
