"""Rules and graphs: where the left side of a rewrite stands in a graph, and what the right side is there.

Holds patterns (the left side as applications), the search for them, the decision of conditions, and the nodes of the
right side. Offers `find` and `replacement` on any graph that answers the questions of `View`. Must not know how a graph
is stored, nor whether a rule is proved: whoever asks chooses the rules.
"""
