"""The errors of the semantics layer. The taxonomy is closed: SpecError lives in `sonnx.spec`, Violation is data."""

from __future__ import annotations


class ModelError(Exception):
    """The file cannot be read as a model: a one-line message that says what is wrong and what to do. Exit code 2."""


class Unsupported(Exception):  # noqa: N818 - the name is the taxonomy's
    """The model is valid, this package does not handle it: the message names what."""


class InternalError(Exception):
    """A defect of this package: two parts that must agree do not. Exit code 4."""
