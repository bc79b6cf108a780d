"""The gates of a theorem or lemma, beyond its proof, and the suite that puts all of them through.

It offers `judging`. A gate never makes a theorem; it takes one away.
"""
