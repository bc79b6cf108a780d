"""Values recorded elsewhere, and the steps of a run judged against them.

It offers `reference.opened` and `judging.judged`. It knows engines by their protocol alone, and moves nothing.
"""
