"""The specification as a site: pages of HTML and MathML that need no network and run nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ...elaborate.coverage import coverage
from ...elaborate.declared import signatures_of
from ...elaborate.schema import Signature
from ...language.syntax import Operator
from ...library import Specification
from .declarations import file_page
from .examples import Example, Execute, Executed
from .operator_page import operator_page
from .overviews import coverage_page, demands_page, index_page, names_page
from .places import COVERAGE, DEMANDS, INDEX, NAMES, page_name, places
from .references import references


def site(
    specification: Specification,
    texts: Mapping[str, str],
    examples: Iterable[Example] = (),
    execute: Execute | None = None,
    more: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> dict[str, str]:
    """The pages by file name. texts: of the files, by name. Without `execute` no example is shown. more: further
    pages by address, each with its title; the entrance lists them.
    """
    files = tuple(specification.files.values())
    where = places(files)
    known = references(files, where)
    covered = coverage(specification.operators, specification.functions, specification.contracts.values())
    by_operator: dict[str, list[Example]] = {}
    for example in examples:
        by_operator.setdefault(example.operator, []).append(example)
    pages = {
        INDEX: index_page(files, texts, covered, [(title, address) for address, (title, _) in more.items()]),
        COVERAGE: coverage_page(covered, where),
        NAMES: names_page(files, where),
        DEMANDS: demands_page(where, known),
    }
    pages |= {address: text for address, (_, text) in more.items()}
    pages |= {page_name(file.name): file_page(file, texts[file.name], where, known) for file in files}
    for name, meanings in specification.operators.items():
        versions = signatures_of(meanings)
        shown = {} if execute is None else executed(meanings, versions, by_operator.get(name, ()), execute)
        pages[where.operators[name]] = operator_page(
            meanings, versions, specification.functions, texts, where, known, shown
        )
    return pages


def executed(
    meanings: Sequence[Operator], versions: Sequence[Signature], examples: Sequence[Example], execute: Execute
) -> dict[int, list[tuple[str, int, Executed]]]:
    """For the first version of each meaning the examples that fit it, each at the newest version that it fits."""
    by_file: dict[int, list[tuple[str, int, Executed]]] = {}
    for meaning in meanings:
        within = [s for s in reversed(versions) if meaning.first <= s.version <= meaning.last]
        for example in examples:
            signature = next((s for s in within if example.fits(s)), None)
            if signature is not None:
                outcome = execute(example, signature)
                by_file.setdefault(meaning.first, []).append((example.says, signature.version, outcome))
    return by_file
