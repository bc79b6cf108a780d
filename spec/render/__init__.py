"""The specification as a document: text, Markdown, mathematical notation and a site of HTML.

It offers `documents` for single declarations and `site` for all of them. It reads what is elaborated and must not
know the layers that execute it: examples with results come in through an entry point.
"""
