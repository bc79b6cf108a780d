"""The expression language of the debugger: parsed to data, evaluated at a position.

It runs no Python of the user. It knows timelines and no commands.
"""
