"""Values as bytes: that decoding gives back what was encoded, from the definitions of part 3b.

Holds an evaluation of these definitions for many numbers at once, and for numbers of which only the width is known, and
what is asked of them. It knows nothing of theorems about graphs.
"""
