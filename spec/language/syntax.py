"""The syntax of the specification language: declarations and one expression type, each with its span.

Every later stage (elaboration, printing, rendering, each interpretation) is a fold over `Expr`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a specification file; lines and columns count from 1, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = Span("", 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort of the language: a base name, or `set`, `list` or `Array` of a sort (`element`)."""

    name: str
    element: Sort | None = None

    def __str__(self) -> str:
        return self.name if self.element is None else f"{self.name} {self.element}"


BOOL, INT, TEXT = Sort("Bool"), Sort("Int"), Sort("Text")


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression: a head out of `HEADS` and its arguments, in source order.

    Arguments by head:
      var, text (str) · int (int) · float (str, as written) · true, false ()
      or, and (Expr, Expr, ...) · not, neg (Expr) · implies, iff, add, sub, concat, mul, quotient, div, mod (Expr, Expr)
      compare (Expr, relation, Expr, relation, Expr ...), relation one of = != < <= > >= in "not in"
      forall, exists, unique (Binder, ..., Expr) · ite (condition, then, else) · case (Expr, Arm, ...)
      fold (name, Range, ..., guard Expr or None, start Expr or None, body Expr)
      index (Expr, Expr, ...) · call (name, Expr, ...) · given (name)
      apply (operator, version, Expr or None, ..., Keyword, ...), None for an optional input that is left out
      every (sort name), the set of all its elements
      step (rule or "", Expr or None, Expr, ...), the rule leads from the first half of the expressions to the second
      vector (Expr, ...) · comprehension (body, name, bound, guard or None) · collect (body, Binder, guard or None)
      set_comprehension (Expr, Binder, ..., guard Expr or None) · map_comprehension (key, value, Binder, ...)
      pair (key, value), what a map that is the entry of a sequence has; in a statement `entries` alone
    """

    head: str
    args: tuple[Expr | Binder | Range | Arm | Keyword | str | int | None, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)

    def part(self, position: int) -> Expr:
        """The argument at a position, which is an expression by the table above."""
        part = self.args[position]
        if not isinstance(part, Expr):
            raise TypeError(f"{self.span}: argument {position} of {self.head} is no expression")
        return part

    def parts(self) -> list[Expr]:
        """The arguments that are expressions."""
        return [arg for arg in self.args if isinstance(arg, Expr)]

    def children(self) -> Iterator[Expr]:
        """The direct sub-expressions, those inside binders, ranges, arms and keywords included, in source order."""
        for arg in self.args:
            match arg:
                case Expr():
                    yield arg
                case Binder(domain=inner) | Range(bound=inner) | Arm(body=inner) | Keyword(value=inner):
                    yield inner


HEADS = frozenset((
    "var", "int", "float", "text", "true", "false",
    "or", "and", "not", "implies", "iff", "compare",
    "add", "sub", "concat", "mul", "quotient", "div", "mod", "neg",
    "forall", "exists", "unique", "ite", "case", "fold",
    "index", "call", "given", "apply", "every", "step",
    "vector", "comprehension", "collect", "set_comprehension", "map_comprehension", "pair",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Binder:
    """`name in domain` of a quantifier or comprehension."""

    name: str
    domain: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Range:
    """`name < bound`, `name... < bound` (an index vector) or `(q, r) < bound` (one axis split into several indices)."""

    names: tuple[str, ...]
    dots: bool
    bound: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of a `case`: the texts it stands for (none: `else`) and its body."""

    labels: tuple[str, ...]
    body: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Keyword:
    """`name = value`, an attribute of an operator that is applied."""

    name: str
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Clause:
    """`key value` behind a declaration: source, quote, note, status, variant, evidence, violation, suggest, demanded,
    obligation (of a constraint that is open at some elements: the definition that says in words what data must meet
    there, empty where data do not decide it), unwaivable (of a constraint whose violation nobody may accept: why),
    unused (an attribute that has no influence), collects, includes (one
    clause for each name of its list).

    `violation` and `suggest` are templates: `parts` holds their text and the expressions between braces, in order.
    """

    key: str
    value: str
    parts: tuple[str | Expr, ...] = field(default=(), compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A formal parameter of a function."""

    name: str
    sort: Sort
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SortDeclaration:
    """A sort and what its elements are."""

    name: str
    doc: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The distance from the exact value that an implementation may have, in units in the last place; and why."""

    ulps: int
    reason: str


@dataclass(frozen=True, slots=True)
class FunctionDeclaration:
    """A function symbol.

    `kind`: fact (read off a graph), fun (primitive), record (makes an element of a sort of its arguments), field (gives
    back the argument of its name), define (has a body), inductive (least fixpoint). clauses: notes,
    and `drawn` of a primitive that has several results, one of which is drawn: how.
    """

    kind: str
    name: str
    parameters: tuple[Parameter, ...]
    result: Sort
    doc: str
    body: Expr | None
    span: Span = field(default=NOWHERE, compare=False)
    accuracy: Accuracy | None = None
    clauses: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class Constraint:
    """A named formula over the facts of a graph; `phase` is static (before running) or final (after it)."""

    name: str
    doc: str
    phase: str
    formula: Expr
    clauses: tuple[Clause, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Premise:
    """`if expr` (name is None) or `let name = expr`."""

    name: str | None
    expr: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Transition:
    """A moded rule of the machine: premises run in written order, then source ~> target."""

    name: str
    doc: str
    premises: tuple[Premise, ...]
    source: tuple[Expr, ...]
    target: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Property:
    """A formula about all graphs: for all values of the parameters, if the premises hold, so does the goal.

    `kind`: law (assumed: what the sentence of a fact or primitive says, as a formula), theorem (proved), lemma (proved
    too, it serves theorems), finding (the goal does not follow: a graph refutes it) or situation (the premises hold for
    some values of the parameters, in a model of all laws; its goal is `true`, and is not written).
    needs: the constraints, laws and earlier theorems that a theorem rests on, and in spite of which a finding stands;
    the constraints that the model of a situation keeps.
    """

    kind: str
    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    premises: tuple[Premise, ...]
    needs: tuple[str, ...]
    goal: Expr
    clauses: tuple[Clause, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ProfileRule:
    """A rule of a rule set: its id there, its title, the constraint that it demands."""

    id: str
    title: str
    constraint: str
    clauses: tuple[Clause, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Profile:
    """A versioned rule set."""

    name: str
    doc: str
    clauses: tuple[Clause, ...]
    rules: tuple[ProfileRule, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Port:
    """A formal input or output of an operator. `mark`: "" required, "?" optional, "*" variadic.

    `shape`: None when the text binds no shape, else its dimensions: a name, a name with dots (`("d", True)`) or an int.
    `others`: where a variadic input comes in groups, the types of the entries of a group behind the first, which has
    `type`.
    """

    name: str
    mark: str
    type: str
    shape: tuple[tuple[str, bool] | int, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False)
    others: tuple[str, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the entries of a group; of any other port its type."""
        return (self.type, *self.others)


def spelled_group(first: str, others: tuple[str, ...]) -> str:
    """The type of a port as the header writes it: `T`, of a group `(T, float, T)`."""
    return f"({', '.join((first, *others))})" if others else first


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of an operator's definition; statements stand in written order.

    `kind`, and what of the fields it uses besides `expr`:
      let (names) · function (names[0], parameters), a local function
      require (id, doc, clauses), where it does not hold there is no result
      restrict (id, doc, clauses), a rule set forbids what is defined all the same: no execution evaluates it
      view (names[0], ranges), a local tensor · equation (names[0], ranges), the elements of an output
      each (names[0], names[1], ranges), the elements of each output of a list, names[1] its position
      entries (names[0], ranges), the elements of each entry of a sequence, ranges[0] its position; where expr is a
        pair, the pairs of each map
      along (ranges[0], body), the views of `body` by steps; expr is `true`
      type (names[0]), the element type of an output · result (names[0]), an output as a whole
      rule (doc), the operator's meaning is the rule of the machine of that name; expr is `true`
    """

    kind: str
    names: tuple[str, ...]
    ranges: tuple[Range, ...]
    expr: Expr
    doc: str = ""
    clauses: tuple[Clause, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: tuple[Statement, ...] = ()
    id: str = ""
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TypeVariable:
    """A type variable of an operator that has no schema, and the types that it stands for."""

    name: str
    allowed: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class AttributeDeclaration:
    """An attribute of an operator that has no schema. mark: "?" where it may be absent. kind: int, floats, string, ...
    default: an expression made of numbers, texts and lists; an attribute with a default may be absent.
    """

    name: str
    mark: str
    kind: str
    default: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Operator:
    """The meaning of an operator for since_versions `first`..`last`. name: with the domain before it, `domain::name`,
    unless that is ONNX's own. types, attributes: of an operator that has no schema.

    like: where the text states a difference, the meaning from which, as `Conv-11`, and the names of what differs.
    """

    name: str
    first: int
    last: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    doc: str
    clauses: tuple[Clause, ...]
    statements: tuple[Statement, ...]
    types: tuple[TypeVariable, ...] = ()
    attributes: tuple[AttributeDeclaration, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    like: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Change:
    """A statement of a difference. `after`: the name of the statement behind which it stands, "" where it replaces the
    one of its own name or stands behind the one written before it.
    """

    statement: Statement
    after: str = ""
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Difference:
    """The meaning of an operator for since_versions `first`..`last`, as what differs from the meaning of `base` at
    `version`; `elaborate.versions` makes an `Operator` of it. inputs, outputs: None where they are the same ones. doc:
    "" where the sentence is. without: the names of statements and keys of clauses that are left out.
    """

    name: str
    first: int
    last: int
    base: str
    version: int
    inputs: tuple[Port, ...] | None
    outputs: tuple[Port, ...] | None
    doc: str
    clauses: tuple[Clause, ...]
    without: tuple[Clause, ...]
    changes: tuple[Change, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Contract:
    """An operator at the since_version `version` that nothing here executes. reason: why, and what to do
    about such a node."""

    name: str
    version: int
    doc: str
    reason: str
    clauses: tuple[Clause, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rule: what the left side computes of the ports, the right side computes as well, and in what sense.

    stored: the inputs that have to be stored values. shared: lets, local functions and types that both sides and the
    conditions may use. left, right: `let`s, whose last ones define the outputs. conditions: `require`s, known to hold
    before the rule is applied. claim: one of `CLAIMS`; assumed: `require`s, of the values, under which it holds over
    the reals; reason: why it does not hold, of a rule that is never right. attributes: beside those that the left side
    binds.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    doc: str
    clauses: tuple[Clause, ...]
    shared: tuple[Statement, ...]
    left: tuple[Statement, ...]
    right: tuple[Statement, ...]
    conditions: tuple[Statement, ...]
    claim: str
    assumed: tuple[Statement, ...] = ()
    reason: str = ""
    stored: tuple[str, ...] = ()
    types: tuple[TypeVariable, ...] = ()
    attributes: tuple[AttributeDeclaration, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


CLAIMS = ("exact", "allowed", "reals", "never")
"""What a rewrite claims: the same bits; a result that the left side may have; equal over the reals; nothing of it."""
PROVED = ("theorem", "lemma")
"""The kinds of properties that are proved."""
DEMANDS = frozenset({"require", "restrict"})
"""The statements that say what a use of the operator has to keep, with who demands it."""

Declaration = (
    SortDeclaration | FunctionDeclaration | Constraint | Transition | Property | Profile | Operator | Contract | Rewrite
)
Written = Declaration | Difference
"""A declaration as it is written."""


@dataclass(frozen=True, slots=True)
class File:
    """One specification file: its name (relative to `spec/`), its declarations in document order."""

    name: str
    declarations: tuple[Declaration, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A specification file as it is written, with differences between the versions of operators."""

    name: str
    declarations: tuple[Written, ...]


def clause(clauses: tuple[Clause, ...], key: str) -> str | None:
    """The value of the first clause named `key`, None without one."""
    return next((c.value for c in clauses if c.key == key), None)


def values(clauses: tuple[Clause, ...], key: str) -> tuple[str, ...]:
    """The values of all clauses named `key`, in order."""
    return tuple(c.value for c in clauses if c.key == key)
