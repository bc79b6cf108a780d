"""The specification of ONNX graphs under the SONNX profile: its texts, and the language that they are written in.

The texts lie at the root (1-syntax to 6-properties, 5-operators/, profiles/, examples/); `library` reads them. This
layer executes no model: what a text means is the business of the layers above, which this one does not know.

`sonnx.spec.__version__` is the version of the distribution (`sonnx` itself is a namespace package, without attributes).
"""

__version__: str


def __getattr__(name: str) -> str:
    """The version, read from the metadata of the installed distribution when it is asked for."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("sonnx")
