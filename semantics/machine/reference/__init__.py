"""The reference interpreter: it executes the rules of part 3 as they are written, and knows nothing of any operator.

Holds the meaning of expressions on one state, the primitives, rules and runs, and the state of the fast machine as one
of these. It must not know the modules that take the transitions of the fast machine: the two are held against each
other.
"""
