"""Facts of values: element type, sizes, small contents, and what an application requires, from the operators' texts.

A fact of a value holds in every run of either model in which the value comes about: it follows from the declared types
of the inputs and from the applications that give the value, never from where else it is used. Sizes may be 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from sonnx.semantics.errors import Unsupported
from sonnx.semantics.formulas.terms import TRUE, Term
from sonnx.semantics.model.elements import FLOATS
from sonnx.semantics.operators.application import AttributeData
from sonnx.semantics.operators.shapes import contents
from sonnx.semantics.operators.shapes.contents import SMALL, Content, Examined, Site, Symbols, constant, mentioned
from sonnx.semantics.operators.shapes.node import examine
from sonnx.semantics.operators.symbolic.numbers import at_most
from sonnx.semantics.operators.symbolic.values import conjuncts

from .table import ApplicationId, Result, Stored, Table, ValueId

_UNKNOWN: Final = Content("", "", None, reason="nothing is known of it")


def _perhaps(_facts: object, _symbols: object) -> bool:
    """Nothing is excluded by facts here."""
    return True


def _required(site: Site, demand: contents.Demand) -> bool:
    """True of what a run gets stuck without; False of a restriction."""
    return demand.position < 0 or site.operator.statements[demand.position].kind == "require"


def _plain(entries: Sequence[object] | None) -> bool:
    """True if no element is one of a tensor, or rests on an open size."""
    return all(n is None or isinstance(n, int | Fraction) for n in entries or ())


def _without_elements(content: Content) -> Content:
    """The content without the elements of a stored floating-point tensor."""
    of_floats = content.data is not None and content.element in FLOATS
    return Content(content.name, content.element, content.shape) if of_floats else content


@dataclass
class Facts:
    """The facts of a table. given: of inputs. facts, symbols: of open sizes, none of which is negative."""

    table: Table
    given: dict[ValueId, Content] = field(default_factory=dict)
    facts: dict[Term, None] = field(default_factory=dict)
    symbols: dict[str, tuple[int, str]] = field(default_factory=dict)
    _stored: dict[ValueId, Content] = field(default_factory=dict)
    _alike: dict[Hashable, Examined | None] = field(default_factory=dict)
    _examined: dict[ApplicationId, tuple[bool, tuple[Content | None, ...]]] = field(default_factory=dict)

    def size(self, name: str) -> Term:
        """An open size."""
        self.symbols[name] = (0, "Int")
        self.facts[at_most(0, Term(name))] = None
        return Term(name)

    def content(self, value: ValueId) -> Content:
        """The knowledge of a value; its name stands for its elements."""
        match self.table.values[value]:
            case Stored(array=array):
                if value not in self._stored:
                    self._stored[value] = constant(f"t{value}", array)
                return self._stored[value]
            case Result(application=application, position=position):
                given = self._of(application)[1]
                return given[position] or _UNKNOWN if position < len(given) else _UNKNOWN
            case _:
                return self.given.get(value, _UNKNOWN)

    def may_fail(self, application: ApplicationId) -> bool:
        """True unless the text requires nothing that does not hold at these types and sizes."""
        return self._of(application)[0]

    def _of(self, last: ApplicationId) -> tuple[bool, tuple[Content | None, ...]]:
        waiting = [last]
        while waiting:  # not by recursion: graphs are deep
            application = waiting[-1]
            if application in self._examined:
                waiting.pop()
                continue
            made = (self.table.producer(v) for v in self.table.applications[application].inputs if v is not None)
            before = [it for it in made if it is not None and it not in self._examined]
            waiting += before
            if not before:
                self._examined[application] = self._examine(application)
        return self._examined[last]

    def _examine(self, number: ApplicationId) -> tuple[bool, tuple[Content | None, ...]]:
        it = self.table.applications[number]
        if it.operator is None:
            return True, ()
        untyped = it.untyped > 0
        if it.operator.rule:
            return True, self._of_branches(number)
        inputs = tuple(None if v is None else self.content(v) for v in it.inputs)
        site = Site(it.operator, it.version, inputs, it.attributes, it.outputs)
        named = tuple(self.table.result(number, k) if asked else None for k, asked in enumerate(it.outputs))
        try:
            examined = self._by_sizes(site, it.attributes)
            if examined is None:
                examined = examine(site, tuple(self.facts), self.symbols, _perhaps)
                spelled = contents.names(number, named, site, examined)
                examined = contents.renamed(examined, spelled, contents.tensors(site))
        except Unsupported:
            return True, ()
        fails = untyped or any(not self._holds(site, demand) for demand in examined.demands)
        return fails, tuple(
            None if v is None or content is None else self._settled(v, content, examined, self.symbols)
            for v, content in zip(named, examined.outputs, strict=False)
        )

    def _by_sizes(self, site: Site, attributes: Mapping[str, AttributeData]) -> Examined | None:
        """The text's word on a site where all that it requires follows from types and sizes that are numbers, and what
        it gives speaks of no tensor, so that it is the same at all sites which are alike in these; None elsewhere."""
        key = self._key(site, attributes)
        if key is None:
            return None
        if key not in self._alike:
            inputs = tuple(None if c is None else _without_elements(c) for c in site.inputs)
            examined = examine(replace(site, inputs=inputs), (), {}, _perhaps)
            plain = all(it.goal == TRUE or not _required(site, it) for it in examined.demands)
            sized = all(c is None or (c.size is not None and not c.reason and c.law is None) for c in examined.outputs)
            sized = sized and all(_plain(c.entries) for c in examined.outputs if c is not None)
            self._alike[key] = examined if plain and sized else None
        return self._alike[key]

    def _key(self, site: Site, attributes: Mapping[str, AttributeData]) -> Hashable:
        """Equal for sites that are alike in all but their floating-point elements; None for others."""
        inputs: list[Hashable] = []
        for c in site.inputs:
            if c is not None and (c.size is None or c.items is not None or c.law is not None):
                return None
            entries = None if c is None else c.entries
            data = None if c is None or c.element in FLOATS else c.data
            if not _plain(entries):
                return None
            if data is not None and (data.size > SMALL or data.dtype.hasobject):
                return None
            elements = entries if data is None else data.tobytes()
            inputs.append(None if c is None else (c.element, c.shape, elements))
        return site.operator, site.version, tuple(inputs), self.table.attributes_key(attributes), site.outputs

    def _of_branches(self, number: ApplicationId) -> tuple[Content | None, ...]:
        """The outputs of an If of which both branches give the same type and fixed sizes."""
        it = self.table.applications[number]
        if it.name != "If" or len(it.bodies) != 2:
            return ()
        made: list[Content | None] = []
        for k, asked in enumerate(it.outputs):
            both = [self.content(body.outputs[k]) for body in it.bodies if k < len(body.outputs)]
            alike = len(both) == 2 and (both[0].element, both[0].shape) == (both[1].element, both[1].shape)
            known = asked and alike and bool(both[0].element) and not any(c.dead for c in both)
            made.append(Content(f"t{self.table.result(number, k)}", both[0].element, both[0].shape) if known else None)
        return tuple(made)

    def _holds(self, site: Site, demand: contents.Demand) -> bool:
        if not _required(site, demand):
            return True
        if demand.goal is None:
            return False
        return demand.goal == TRUE or all(part in self.facts for part in conjuncts(demand.goal))

    def _settled(self, value: ValueId, content: Content, examined: Examined, known: Symbols) -> Content:
        """The content with sizes in open sizes of this table; nothing else that the examination has named stays."""
        if content.dead:
            return replace(_UNKNOWN, name=f"t{value}")
        new = examined.symbols.keys()
        shape = content.shape
        if shape is not None:
            shape = tuple(
                self.size(f"t{value}.size.{axis}") if isinstance(n, Term) and mentioned(n) & new else n
                for axis, n in enumerate(shape)
            )
        entries = content.entries
        if entries is not None:
            entries = tuple(
                n if isinstance(n, int) or (isinstance(n, Term) and not mentioned(n) & new) else None for n in entries
            )
        return Content(f"t{value}", content.element, shape, entries, content.data, reason=content.reason)
