"""A session as a value: timeline, position, stops; how one is opened and how it moves.

Commands make new sessions. It knows no face.
"""
