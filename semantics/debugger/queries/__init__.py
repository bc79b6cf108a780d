"""Where a value comes from and why it is what it is: sources, origins, arithmetic, what is not a number.

It computes from footprints of the text and knows no command.
"""
