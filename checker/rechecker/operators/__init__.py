"""Types, shapes and requirements of operators, derived again from ONNX's schema and the operators' texts.

It shares the grammar (`spec/language.lark`) and the texts (`spec/5-operators`) with the certifier, and no code.
"""
