"""Every error message of the specification language, by kind. A test demands an `.expect` case for each."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    # ---- reading -----------------------------------------------------------------------------
    "syntax/unexpected": "unexpected {found}; expected {expected}",
    "syntax/end": "the text ends too early; expected {expected}",
    "syntax/character": "the character {found} has no meaning here; expected {expected}",
    "syntax/open-text": "this text is not closed; put a double quote at its end",
    "template/expression": "the expression {{{piece}}} of this template cannot be read: {problem}",
    "template/brace": "a brace of this template has no partner; write an expression as {{name}}",
    # ---- names -------------------------------------------------------------------------------
    "name/duplicate": "the {what} {name} is declared twice; rename one of them",
    "name/reserved": "{name} has a meaning of its own in the language; choose another name",
    "name/sort": "no sort is named {name}{hint}",
    "name/function": "no function is named {name}{hint}",
    "name/unbound": "{name} is not bound here{hint}",
    "name/no-parentheses": "{name} is a function; call it with parentheses: {name}(...)",
    "name/variable-called": "{name} is a variable, not a function; remove the parentheses",
    "name/shadow": "{name} is already bound; choose another name",
    "name/unused": "{name} is bound but never used; remove it or use it",
    "name/recursion": "the definition of {name} depends on itself ({path}); only an inductive predicate may",
    "name/memory": "M, the memory at the end, exists in constraints at phase final only",
    # ---- arities -----------------------------------------------------------------------------
    "arity/arguments": "{name} takes {expected} argument(s), not {found}",
    "arity/index": "a list takes one index, not {found}",
    "arity/rank": "{name} has {expected} axes, but {found} indices are given",
    "arity/names": "this gives {found} value(s) to {expected} names",
    "arity/split": "{expected} indices split an axis into {found} part(s); give one size for each index",
    # ---- sorts -------------------------------------------------------------------------------
    "sort/expected": "expected {expected}, found {found}",
    "sort/operands": "{operator} cannot combine {left} and {right}",
    "sort/number": "{operator} needs a number or a list of numbers, found {found}",
    "sort/order": "{relation} compares numbers, not {left} and {right}",
    "sort/equality": "{relation} compares {left} with {right}, which have no value in common",
    "sort/membership": "{left} cannot be a member of {right}",
    "sort/domain": "a variable ranges over a set or a list, not over {found}",
    "sort/branches": "the branches have different sorts: {left} and {right}",
    "sort/elements": "the elements have different sorts: {left} and {right}",
    "sort/not-indexable": "{found} cannot be indexed",
    "sort/index": "an index is an integer{vector}, not {found}",
    "sort/bound": "the index {name} runs below an integer, not below {found}{hint}",
    "sort/vector-bound": "the index vector {name}... runs below a list of integers, not below {found}",
    "sort/any": "Any stands for every sort and is allowed in the parameters and the result of a fun only",
    "sort/unclear": "the sort of {name} does not follow from its uses",
    # ---- expressions -------------------------------------------------------------------------
    "case/label": 'the label "{label}" occurs twice in this case',
    "case/else": "else is the last arm of a case; move it to the end",
    "fold/start": "{name} takes no start value; only sum, prod, max and min do",
    "given/graph": "given asks for an optional input or attribute and belongs into an operator",
    "given/required": "{name} is always present; given asks for optional inputs and attributes",
    "given/unguarded": "{name} may be absent; use it only where given {name} holds",
    # ---- inductive predicates ----------------------------------------------------------------
    "inductive/negative": "{name} is inductive and stands below {where}; a clause uses it positively",
    "inductive/define": "{name} uses the inductive predicate {inductive} below {where}; a clause uses it positively",
    # ---- clauses, profiles -------------------------------------------------------------------
    "clause/misplaced": "a {what} has no clause {key}; allowed: {allowed}",
    "clause/repeated": "the clause {key} occurs twice; keep one",
    "clause/missing": "the {what} {name} has no clause {key}",
    "clause/demanded": "demanded is ONNX, SONNX or SONNX/rule, not {value}",
    "profile/constraint": "no constraint is named {name}{hint}",
    "profile/id": "the rule {id} occurs twice in this rule set; give one a variant of its own",
    "profile/status": "{value} is no status; use one of {allowed}",
    # ---- transitions -------------------------------------------------------------------------
    "transition/source": "the left side of ~> lists variables, each once; bind other values with let",
    "transition/size": "the two sides of ~> have {source} and {target} components; they must agree",
    # ---- operators ---------------------------------------------------------------------------
    "operator/range": "the first version {first} is later than the last version {last}",
    "operator/overlap": "{name} at version {version} has two meanings; the ranges must not overlap",
    "operator/no-output": "{name} is no output of {operator}; an equation defines an output, a view something local",
    "operator/output-twice": "the output {name} has two equations; keep one",
    "operator/undefined-output": "the output {name} has no equation",
    "operator/fact": "{name} speaks about graphs; an operator is defined by its inputs and attributes alone",
    # ---- the ONNX schema ---------------------------------------------------------------------
    "schema/operator": "ONNX has no operator {name}{hint}",
    "schema/version": "{version} is no version of {name}; its versions are {versions}",
    "schema/no-port": "{operator}-{version} has no {direction} {name}{hint}",
    "schema/missing-port": "{operator}-{version} has the {direction} {name}, which the text lacks",
    "schema/port-order": "{direction} {name} is at position {found}, in {operator}-{version} at position {expected}",
    "schema/mark": "the {direction} {name} is {expected} in {operator}-{version}, the text says {found}",
    "schema/type": "the {direction} {name} has the type {expected} in {operator}-{version}, the text says {found}",
    "schema/no-attribute": "{operator}-{version} has no attribute {name}, which the text uses; split the version range",
    "schema/ignored-attribute": "the text says nothing about the attribute {name} of {operator}-{version}; "
    "use it, or declare it with the clause unused",
    "schema/attribute-sort": "the attribute {name} has other types or defaults in {operator}-{first} and "
    "{operator}-{version}; split the version range",
    "schema/unused-attribute": "{operator}-{version} has no attribute {name} that could be unused",
    "schema/used-attribute": "{name} is declared unused, but the text uses it",
}
