"""The requests `variables` and `setVariable`: what is in a container, as much of it as is asked for."""

from __future__ import annotations

from typing import Final

from ..expressions.evaluating import tensor_and_subscripts
from ..inspection.items import Item, View, distinct, grouped, page
from ..inspection.tensor_items import expression_item
from ..session.command import context, expression
from ..timeline.refused import Refused
from .adapter import Adapter
from .arguments import Arguments
from .containers import Container, changed, item_of, variable
from .edits import check_edits, edited
from .registry import Body, Handler

_MOST: Final = 1000
"""So many numbered variables are given at once, whatever is asked for."""


def view_of(given: Arguments) -> View:
    """How values are to be shown."""
    return View(hexadecimal=given.part("format").flag("hex"))


def _variables(adapter: Adapter, given: Arguments) -> Body:
    container = adapter.references.get(given.whole("variablesReference"), Container, "variable")
    wanted, start = given.text("filter", ""), given.whole("start", 0)
    if wanted not in ("", "named", "indexed"):
        raise Refused('"filter" must be named or indexed')
    count = given.whole("count", 0)
    session, view, parts = adapter.session, view_of(given), container.parts
    found: list[tuple[tuple[int | str, ...], Item]] = []
    paged = bool(count) or (wanted == "indexed" and parts.count - start <= _MOST)
    if wanted == "named" or (not wanted and not (paged and start)):
        named = distinct(parts.named(session, view))
        named = named[start : start + count if count else None] if wanted else named
        found += [((*container.key, item.name), item) for item in named]
    if wanted != "named" and paged:
        items = page(session, parts, view, start, min(count or _MOST, _MOST))
        found += [((*container.key, start + i), item) for i, item in enumerate(items)]
    elif wanted != "named" and parts.count:
        items = grouped(session, parts, view)
        ranged = items[0].kind == "virtual"
        found += [((*container.key, item.name if ranged else i), item) for i, item in enumerate(items)]
    container.shown.update((item.name, item) for _, item in found)
    return {"variables": [variable(adapter, item, key) for key, item in found]}


def _set_variable(adapter: Adapter, given: Arguments) -> Body:
    check_edits(adapter)
    container = adapter.references.get(given.whole("variablesReference"), Container, "variable")
    name, value = given.text("name"), given.text("value")
    item = item_of(adapter.session, container, name)
    if item is None:
        raise Refused("there is no such variable: ask for the variables again")
    if not item.editable or not item.expression:
        raise Refused("only single numbers can be changed: open the tensor and change an element")
    instance, _ = tensor_and_subscripts(expression(adapter.session, item.expression), context(adapter.session))
    edited(adapter, f"set {item.expression} = {value}", instance)
    after = expression_item(adapter.session, item.expression, view_of(given))
    return changed(adapter, after, (*container.key, f"set {name}"))


HANDLERS = (
    Handler("variables", _variables, {"supportsValueFormattingOptions": True}),
    Handler("setVariable", _set_variable, {"supportsSetVariable": True}),
)
"""The handlers of this file."""
