"""Replaying a certificate on its model: a second opinion that shares no code with the certifier, and needs no solver.

It reads the model with its own reader, and judges by functions of its own. `recheck` replays a certificate.
"""

from .replay import Outcome, Recheck, recheck

__all__ = ["Outcome", "Recheck", "recheck"]
