"""Answers as data, and what every face shows of them: the listing, elements as texts, documents.

It knows values and names, and no session.
"""
