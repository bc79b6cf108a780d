"""The meaning of operators: what an application of a definition of the text computes, by interpretation.

`application` is the contract between the machine and these meanings, `program` a model with one of them. It knows no
state of a run.
"""
