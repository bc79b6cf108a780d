"""The rules of part 3 for If, Loop, Scan and SequenceMap: bodies that run in frames.

`flow` is the entry of the four. It changes no state but by the transition that it returns.
"""
