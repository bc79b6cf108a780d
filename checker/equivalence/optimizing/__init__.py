"""Graphs made smaller by rules that are proved.

Holds an open model, the passes over it, the pipeline of `sonnx optimize`, its report and its certificate. Offers
`optimize`. There are two kinds of passes: local ones apply rewrites of the text at a place; global ones look at the
whole model, and apply the theorems of part 6 on folding, equal and dead nodes, or move Transposes. Must not know which
rules there are, nor how they are proved.
"""
