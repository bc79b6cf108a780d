"""What every command shares on a terminal: text made harmless, the progress bar, and the console's width.

It offers `inert`, `progress` and `consoles` and knows nothing of the specification.
"""
