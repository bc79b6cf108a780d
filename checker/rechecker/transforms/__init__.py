"""Certificates about two models, of `sonnx optimize` and `sonnx equiv`: their steps done again by matching alone.

Holds the rewrites of part 7 as read here, a model that steps change, the match of a rule, its conditions and its right
side by the rechecker's own evaluator, the record of proofs as read here, and the comparison of the models at the end.
Offers `judging.judged`. Must not know how rules are proved, searched for or chosen.
"""
