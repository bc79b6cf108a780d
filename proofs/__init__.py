"""Proofs: theorems about the specification, for all graphs, checked by machine from the text that is executed.

The kernel makes theorems, scripts say how, gates try to break them, findings show what does not follow.
"""
