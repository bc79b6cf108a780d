"""All that can be opened as a tree: tensors, values, scopes, bytes; parts are made when they are asked for.

It reads a session and changes none.
"""
