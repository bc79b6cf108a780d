"""Instances of operator definitions: the numbers of axes are fixed, sizes and attributes are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sonnx.spec.elaborate.schema import signatures
from sonnx.spec.language.syntax import Operator, Port

RANKS = range(5)
"""The numbers of axes that a name with dots stands for where a port has no other axis; one less beside others."""
VARIADIC = ((0,), (1,), (2,), (3,), (1, 1), (2, 2), (1, 2), (2, 1), (0, 2), (2, 2, 2), (3, 3), (1, 2, 1))
"""The ranks of variadic inputs."""
SEQUENCES = ((), (1,), (0, 2))
"""The ranks of the tensors in sequences and optionals; an optional with two entries is none, and does no harm."""
OUTPUTS = ((0,), (0, 0), (0, 0, 0))
"""How many outputs a list of them has."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A definition with the number of axes of each input; a variadic input and a sequence have one number for each of
    their tensors, a list of outputs a 0 for each output.
    """

    operator: Operator
    ranks: Mapping[str, tuple[int, ...]]

    @property
    def label(self) -> str:
        """The ranks in words: `X: 4, W: 4`."""
        return ", ".join(f"{name}: {' '.join(map(str, ranks))}" for name, ranks in self.ranks.items())


def is_list(operator: Operator, port: Port) -> bool:
    """Whether an input is a list: of tensors where it is variadic, a sequence or an optional."""
    newest = next(s for s in reversed(signatures()[operator.name]) if operator.first <= s.version <= operator.last)
    return port.mark == "*" or any(f.name == port.name and f.sort.name == "list" for f in newest.inputs)
