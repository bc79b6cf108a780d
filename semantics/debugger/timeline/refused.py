"""What cannot be carried out: raised where it is found, answered as a Refusal by the command table."""

from __future__ import annotations


class Refused(Exception):  # noqa: N818 - input that cannot be followed, no defect
    """A sentence that says what is wrong and what to do. candidates: what may have been meant."""

    def __init__(self, message: str, candidates: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message, self.candidates = message, candidates


class NoValue(Refused):
    """A tensor has no value at the position. A condition that needs it does not hold there."""
