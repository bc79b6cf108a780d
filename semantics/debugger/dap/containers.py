"""Items of the debugger as the protocol's variables, and what has a `variablesReference`."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...machine.trace.format import Json
from ...model.graph import TensorId
from ..inspection.items import Item, Parts, part_named
from ..session.session import Session
from .adapter import Adapter
from .edits import edits_allowed
from .memory_references import everything, reference_to


@dataclass(frozen=True, slots=True)
class Container:
    """What `variables` may be asked about. key: how one gets there from a frame, so that the same container has the
    same number. session: where it was made. shown: the children that the client was told of, by name."""

    key: tuple[int | str, ...]
    parts: Parts = field(compare=False)
    session: Session = field(compare=False)
    shown: dict[str, Item] = field(default_factory=dict, compare=False)

    def expression_of(self, name: str) -> str | None:
        """How the debugger's expressions say the child of that name; None where they do not."""
        item = item_of(self.session, self, name)
        return None if item is None or not item.expression or item.kind == "virtual" else item.expression


@dataclass(frozen=True, slots=True)
class Location:
    """What a `locationReference` means: a line of the listing, or the tensor's name in it, or the definition of an
    operator, by name and version."""

    line: int | None = None
    tensor: TensorId | None = None
    operator: tuple[str, int] | None = None


def variable(adapter: Adapter, item: Item, key: tuple[int | str, ...]) -> dict[str, Json]:
    """An item as a Variable. key: of the item, as a container."""
    found: dict[str, Json] = {
        "name": item.name,
        "value": item.value,
        "presentationHint": _hint(adapter, item),
        **_shared(adapter, item, key),
    }
    if item.expression:
        found["evaluateName"] = item.expression
    if item.line is not None:
        found["declarationLocationReference"] = adapter.references.to(_declared(item))
    return found


def result(adapter: Adapter, item: Item, key: tuple[int | str, ...]) -> dict[str, Json]:
    """An item as the body of the response to evaluate. Its value points to the line that makes it."""
    hint = _hint(adapter, item)
    found: dict[str, Json] = {"result": item.value, "presentationHint": hint, **_shared(adapter, item, key)}
    if item.line is not None and item.operator is None:
        found["valueLocationReference"] = adapter.references.to(_declared(item))
    return found


def changed(adapter: Adapter, item: Item, key: tuple[int | str, ...]) -> dict[str, Json]:
    """An item as the body of the response to setVariable and setExpression."""
    return {"value": item.value, **_shared(adapter, item, key)}


def _shared(adapter: Adapter, item: Item, key: tuple[int | str, ...]) -> dict[str, Json]:
    found: dict[str, Json] = {"variablesReference": 0}
    if item.type and adapter.client.types:
        found["type"] = item.type
    if item.inside is not None:
        found["variablesReference"] = adapter.references.to(Container(key, item.inside, adapter.session))
        if item.inside.count:
            found["indexedVariables"] = item.inside.count
    if adapter.client.memory_references:
        found |= _memory(adapter.session, item)
    if item.operator is not None:
        found["valueLocationReference"] = adapter.references.to(Location(operator=item.operator))
    elif item.about is not None:
        found["valueLocationReference"] = adapter.references.to(Location(item.about))
    return found


def _declared(item: Item) -> Location:
    return Location(item.line, None if item.tensor is None else item.tensor.tensor)


def _hint(adapter: Adapter, item: Item) -> dict[str, Json]:
    attributes: list[Json] = [] if item.editable and edits_allowed(adapter) else ["readOnly"]
    lazy: dict[str, Json] = {"lazy": True} if item.lazy else {}
    return {"kind": item.kind, "attributes": attributes, **lazy}


def _memory(session: Session, item: Item) -> dict[str, Json]:
    if item.memory:
        return {"memoryReference": everything(session)}
    return {"memoryReference": reference_to(session, item.tensor)} if item.bytes and item.tensor is not None else {}


def item_of(session: Session, container: Container, name: str) -> Item | None:
    """The child of a container that has a name."""
    found = container.shown.get(name)
    return part_named(session, container.parts, name) if found is None else found
