"""The core: what elaboration makes of expressions and definitions. Sorts are known, names resolved, relations alone.

`Core` is one node type. By head: its parts, the other fields that it uses, its sort.

  literal              value                                     Bool, Int, Rational, Text; a negative number is one
  variable             variable                                  that of the variable
  not                  formula                                   Bool
  and, or              formula, formula, ...                     Bool
  implies, iff         formula, formula                          Bool
  compare              left, right; name: the relation           Bool; of a chain `and` with the name chain
  ite                  condition, then, else                     that of the branches
  case                 subject, body, ...; labels: of each body  that of the bodies; no labels: else
  arithmetic           left, right; name: add, sub, mul, ...     a number, or a list of numbers
  neg                  operand                                   that of the operand
  forall, exists, unique   body; bound                           Bool
  set                  element, guard; bound                     set
  list                 element, guard; bound: one, a list or a number of steps     list
  map                  key, value; bound                         map
  fold                 body, guard, start?; name; bound          by the fold
  vector               entry, ...                                list
  pair                 key, value                                Element; in a statement `entries` alone
  index                base, index, ...                          that of an entry
  size                 a list or a set                           Int
  concat               left, right                               list or map
  fact, inductive, define, fun, record, field   argument, ...; name      the result
  local                argument, ...; name, variable             the result of a function of an operator's text
  given                variable                                  Bool
  apply                input or nothing, ..., attribute, ...; name, value: the version, labels: inputs are unnamed;
                       what is passed on, and may be absent, is an ite of `given x`, x and nothing
  type                 name: of an element type                  Type
  every                                                          set
  step                 state, ..., node?; name: the rule or ""   Bool

A guard that the text leaves out is `true`. `nothing` is an input that is left out. Only a text with mistakes has nodes
`mistaken` and nodes without sort.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..language.syntax import (
    BOOL,
    NOWHERE,
    AttributeDeclaration,
    Clause,
    Expr,
    Parameter,
    Port,
    Sort,
    Span,
    TypeVariable,
)


@dataclass(frozen=True, eq=False)
class Binding:
    """The referent of a name. `origin`: binder, let, parameter, configuration, port, result, shape, attribute, type,
    view, function (a local one, with its parameters; the sort is that of its value).

    Bindings are compared by identity. optional: absent in some nodes. meaning: the expression that a let names.
    """

    name: str
    sort: Sort | None
    origin: str
    span: Span
    optional: bool = False
    parameters: tuple[Parameter, ...] = ()
    meaning: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """Variables with their domain: one variable in a set or list; or below a number, several where one axis is split,
    or below the entries of a vector."""

    variables: tuple[Binding, ...]
    domain: Core

    @property
    def variable(self) -> Binding:
        """The only variable."""
        (only,) = self.variables
        return only


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """A node; see above."""

    head: str
    sort: Sort | None
    parts: tuple[Core, ...] = ()
    span: Span = NOWHERE
    name: str = ""
    value: bool | int | str = ""
    bound: tuple[Bound, ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()
    variable: Binding | None = None

    def children(self) -> Iterator[Core]:
        """The direct parts, domains first."""
        yield from (it.domain for it in self.bound)
        yield from self.parts

    def nodes(self) -> Iterator[Core]:
        """This node and all below it."""
        yield self
        for child in self.children():
            yield from child.nodes()


TRUE, NOTHING = Core("literal", BOOL, value=True), Core("nothing", Sort("Any"))


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """An expression over parameters."""

    parameters: tuple[Binding, ...]
    body: Core


@dataclass(frozen=True, slots=True, eq=False)
class CoreStatement:
    """A statement of an operator's definition. kind, id, doc: as in `Statement`; name: of the output that it defines.

    binds: what the statement names: of a let, a function, a view, a block of views along steps; the position of `each`;
    the element type of `type`. parameters: of a function. bound: the ranges, of `entries` that of the position first.
    inner: the views of a block; body: of the others, and `true` where the statement has none.
    """

    kind: str
    body: Core
    span: Span
    id: str = ""
    doc: str = ""
    name: str = ""
    binds: tuple[Binding, ...] = ()
    parameters: tuple[Binding, ...] = ()
    bound: tuple[Bound, ...] = ()
    inner: tuple[CoreStatement, ...] = ()

    def nodes(self) -> Iterator[Core]:
        """Every node of its expressions."""
        yield from self.body.nodes()
        for item in self.bound:
            yield from item.domain.nodes()
        for view in self.inner:
            yield from view.nodes()


@dataclass(frozen=True, slots=True, eq=False)
class CoreOperator:
    """The meaning of an operator for since_versions `first`..`last`. rule: of the machine that is the meaning, or "".

    names: what the statements start with, by name: ports, element types, attributes, the dimensions of ports. An output
    that has the name of an input is there as `given NAME`. types, attributes: of an operator that has no schema.
    """

    name: str
    first: int
    last: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    doc: str
    span: Span
    names: Mapping[str, Binding]
    statements: tuple[CoreStatement, ...]
    types: tuple[TypeVariable, ...] = ()
    attributes: tuple[AttributeDeclaration, ...] = ()

    @property
    def rule(self) -> str:
        """The rule of the machine that the operator is; "" for a function of its inputs."""
        return next((statement.doc for statement in self.statements if statement.kind == "rule"), "")

    @property
    def applications(self) -> tuple[Core, ...]:
        """The applications of operators that it is made of, in the order of the text."""
        return tuple(core for it in self.statements for core in it.nodes() if core.head == "apply")


@dataclass(frozen=True, slots=True, eq=False)
class CoreRewrite:
    """A rewrite as two definitions with the same ports, attributes and results. claim, reason, stored: as in `Rewrite`.

    The conditions are requirements of the left side, `when1`, `when2`, ..., and what is assumed `where1`, ...
    """

    name: str
    claim: str
    doc: str
    left: CoreOperator
    right: CoreOperator
    stored: tuple[str, ...]
    reason: str
    clauses: tuple[Clause, ...]
    span: Span
