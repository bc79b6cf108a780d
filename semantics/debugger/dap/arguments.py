"""The arguments of a request, each taken out with its type; what is missing or of another type is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...machine.trace.format import Json
from ...model.path import quote
from ..timeline.refused import Refused

LARGEST: Final = (1 << 31) - 1
"""The greatest integer that the protocol's clients keep exactly."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The object `arguments` of a request, or one inside of it. what: how messages call it."""

    found: Mapping[str, Json]
    what: str = "arguments"

    def has(self, name: str) -> bool:
        """Whether it is given, and not null."""
        return self.found.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """A string; the default where it is not given. Raises Refused."""
        value = self._value(name, default)
        if not isinstance(value, str):
            raise self._refused(name, "a string")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false. Raises Refused."""
        value = self._value(name, default)
        if not isinstance(value, bool):
            raise self._refused(name, "true or false")
        return value

    def whole(self, name: str, default: int | None = None, *, least: int = 0, most: int = LARGEST) -> int:
        """An integer. Raises Refused."""
        value = self._value(name, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._refused(name, f"an integer from {least} to {most}")
        return value

    def maybe_whole(self, name: str, *, most: int = LARGEST) -> int | None:
        """An integer, None where it is not given. Raises Refused."""
        return self.whole(name, most=most) if self.has(name) else None

    def part(self, name: str) -> Arguments:
        """An object; an empty one where it is not given. Raises Refused."""
        value = self.found.get(name)
        if value is None:
            return Arguments({}, name)
        if not isinstance(value, dict):
            raise self._refused(name, "an object")
        return Arguments(value, name)

    def parts(self, name: str) -> tuple[Arguments, ...]:
        """The objects of an array; none where it is not given. Raises Refused."""
        return tuple(self._part(name, i, value) for i, value in enumerate(self._items(name)))

    def texts(self, name: str) -> tuple[str, ...]:
        """The strings of an array; none where it is not given. Raises Refused."""
        items = self._items(name)
        if not all(isinstance(it, str) for it in items):
            raise self._refused(name, "an array of strings")
        return tuple(it for it in items if isinstance(it, str))

    def _items(self, name: str) -> list[Json]:
        value = self.found.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._refused(name, "an array")
        return value

    def _part(self, name: str, i: int, value: Json) -> Arguments:
        if not isinstance(value, dict):
            raise self._refused(f"{name}[{i}]", "an object")
        return Arguments(value, f"{name}[{i}]")

    def _value(self, name: str, default: Json) -> Json:
        value = self.found.get(name)
        value = default if value is None else value
        if value is None:
            raise Refused(f"{self.what}: {quote(name)} is missing: give it")
        return value

    def _refused(self, name: str, wanted: str) -> Refused:
        return Refused(f"{self.what}: {quote(name)} must be {wanted}")
