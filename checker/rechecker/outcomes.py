"""The outcome of a recheck."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The verdict of a recheck. CONFIRMED: every statement was derived again."""

    CONFIRMED = "CONFIRMED"
    REFUTED = "REFUTED"
    NOT_CHECKED = "NOT-CHECKED"


@dataclass(frozen=True, slots=True)
class Recheck:
    """The outcome; the reasons against CONFIRMED in one line each; the rules that could not be replayed; the waivers
    that the certificate rests on. shown: of a certificate about two models what is shown of them, and what that rests
    on; nothing where it is refuted."""

    outcome: Outcome
    reasons: tuple[str, ...] = ()
    not_replayed: tuple[str, ...] = ()
    waivers: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The outcome as JSON text."""
        return json.dumps(
            {
                "not_replayed": list(self.not_replayed),
                "outcome": self.outcome.value,
                "reasons": list(self.reasons),
                **({"shown": list(self.shown)} if self.shown else {}),
                "waivers": list(self.waivers),
            },
            indent=2,
        )
