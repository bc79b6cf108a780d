"""The questions behind a verdict as scripts that a third party reads: the model as tables, the rule as the text has it.

`dumping` writes them; it decides nothing that the report says.
"""
