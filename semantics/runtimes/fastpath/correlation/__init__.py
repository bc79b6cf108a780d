"""Cross-correlation of data with kernels, as products of matrices: what Conv and its relatives for integers share.

`sizes` says what is correlated and which way is taken, `ways.prepared` gives what computes it. It must not know
operators or nodes: it sees sizes and arrays alone.
"""
