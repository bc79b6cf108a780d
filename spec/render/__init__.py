"""The specification as a document: text, Markdown, mathematical notation and a site of HTML.

It offers `math` for formulas, `markdown` and `site` for all declarations. It reads what is elaborated and must not
know the layers that execute it: examples with results come in through an entry point.
"""
