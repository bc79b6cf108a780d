"""The facts of a model: what `spec/1-syntax.sonnx` and `spec/1-syntax-onnx.sonnx` declare as fact, as finite tables.

`gathering` fills a `structure` from G; `inference` asks ONNX's shape inference in a process of its own. It judges
nothing: what facts mean for a rule is said by the text and evaluated by `formulas`.
"""
