"""Where every declaration stands on the site."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...language.syntax import File, Operator, Profile
from .outline import page_name

COVERAGE, NAMES, DEMANDS = "coverage.html", "names.html", "demands.html"


def anchor(name: str) -> str:
    """The name as a fragment identifier: other characters than letters, digits, `.` and `-` as their code."""
    return re.sub(r"[^A-Za-z0-9.-]", lambda found: f"_{ord(found.group()):x}_", name)


def operator_page(name: str) -> str:
    """The page of an operator."""
    return f"operator-{name}.html"


def meaning(operator: Operator) -> str:
    """The name of one meaning of an operator."""
    return f"{operator.name}-{operator.first}"


def demand_anchor(operator: Operator, own: str) -> str:
    """The fragment of the `require` or `restrict` of that id in a meaning."""
    return anchor(f"{operator.first}.{own.replace('_', '-')}")


@dataclass(frozen=True, slots=True)
class Places:
    """Addresses by name: of declarations (an operator at each version as `Relu-14`), of operators, and of the rules of
    rule sets by their ids, as (rule set, address). sentences: of the declarations other than operators."""

    names: Mapping[str, str]
    sentences: Mapping[str, str]
    operators: Mapping[str, str]
    rules: Mapping[str, tuple[tuple[str, str], ...]]

    def of(self, name: str) -> str | None:
        """The address of a declaration, None when there is none of that name."""
        return self.names.get(name)

    def demand(self, demanded: str) -> str:
        """The address of a demand of a `require` or `restrict`: a rule of a rule set, else the list of demands."""
        rules = self.rules_of(demanded)
        return rules[0][1] if rules else f"{DEMANDS}#{anchor(demanded)}"

    def rules_of(self, demanded: str) -> tuple[tuple[str, str], ...]:
        """The rules that a `demanded` clause names: `SONNX/Conv-R1` is the rule Conv/R1 of whatever set has it."""
        own = demanded.partition("/")[2]
        return self.rules.get(own) or self.rules.get(re.sub(r"-(R\d+)$", r"/\1", own), ())


def places(files: Iterable[File]) -> Places:
    """The places of everything that the files declare."""
    names: dict[str, str] = {}
    sentences: dict[str, str] = {}
    operators: dict[str, str] = {}
    rules: dict[str, tuple[tuple[str, str], ...]] = {}
    for file in files:
        page = page_name(file.name)
        for declared in file.declarations:
            if isinstance(declared, Operator):
                own = operators[declared.name] = operator_page(declared.name)
                address = f"{own}#{anchor(str(declared.first))}"
                names |= {f"{declared.name}-{v}": address for v in range(declared.first, declared.last + 1)}
                continue
            sentences[declared.name] = declared.doc
            names[declared.name] = f"{page}#{anchor(declared.name)}"
            for rule in declared.rules if isinstance(declared, Profile) else ():
                place = (declared.name, f"{page}#{anchor(f'{declared.name}:{rule.id}')}")
                rules[rule.id] = (*rules.get(rule.id, ()), place)
    return Places(names, sentences, operators, rules)
