"""The states of one run as a timeline: made when asked for, kept, and named as people name what is in them.

It offers `history`, `positions` and `names`. It knows no command and no face.
"""
