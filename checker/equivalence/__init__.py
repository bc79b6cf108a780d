"""When two graphs mean the same: rewrites matched against graphs, proved, and applied.

Each package below holds one of these. None of them knows an operator by name: what an operator is, and which rules
there are, say the texts.
"""
