"""The origin and the explanation of values: sources, origins, arithmetic, what is not a number.

It computes from footprints of the text and knows no command.
"""
