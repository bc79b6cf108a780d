"""ARCHITECTURE.md is true: its table of packages is what the imports say, and what it names is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
LAYERS = ("spec", "semantics", "checker", "proofs")
GROUND = {"spec.language", "spec.terminal", "spec.pages", "spec.project", "semantics.errors", "semantics.resources"}
FRONTS = {"semantics", "checker", "checker.runtimes", "checker.equivalence", "proofs"}
"""The packages that hold others: their `__init__` says so, or offers names of the packages below."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(p): p for layer in LAYERS for p in sorted((ROOT / layer).rglob("*.py"))}


def rows() -> dict[str, list[str]]:
    """The table: for each package those that it imports."""
    lines = re.findall(r"^\| `([a-z_.]+)` \|(.*)\|$", TEXT, re.MULTILINE)
    return {package: re.findall(r"`([a-z_.]+)`", imports) for package, imports in lines}


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of this distribution that a module imports, wherever in it, for types too."""
    package = module if FILES[module].name == "__init__.py" else module.rpartition(".")[0]
    names = set()
    for node in ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = (node.module or "").removeprefix("sonnx.")
            if node.level:
                above = package.split(".")
                base = ".".join([*above[: len(above) - node.level + 1], *([node.module] if node.module else [])])
            elif not (node.module or "").startswith("sonnx"):
                continue
            for alias in node.names:
                full = f"{base}.{alias.name}"
                names.add(full if full in FILES else base)
        elif isinstance(node, ast.Import):
            names |= {alias.name.removeprefix("sonnx.") for alias in node.names if alias.name.startswith("sonnx.")}
    return frozenset(names & FILES.keys() - {module})


def package_of(module: str, packages: Mapping[str, object]) -> str | None:
    """The row that a module belongs to: the longest that it lies in. A front belongs to none."""
    around = [it for it in packages if module == it or module.startswith(f"{it}.")]
    return None if module in FRONTS else max(around, key=len, default=None)


def arrows() -> dict[str, set[str]]:
    table = rows()
    found: dict[str, set[str]] = {package: set() for package in table}
    for module in FILES:
        source = package_of(module, table)
        for other in imports(module):
            target = package_of(other, table)
            if source is not None and target is not None and target not in {source, *GROUND}:
                found[source].add(target)
    return found


def test_every_module_lies_in_a_package_of_the_table() -> None:
    assert not [module for module in FILES.keys() - FRONTS if package_of(module, rows()) is None]


def test_the_table_says_what_is_imported() -> None:
    table = rows()
    assert len(table) > 40
    assert {package: sorted(named) for package, named in table.items()} == {
        package: sorted(found) for package, found in arrows().items()
    }


def test_packages_import_from_rows_above_only() -> None:
    order = {package: k for k, package in enumerate(rows())}
    upwards = [(a, b) for a, found in arrows().items() for b in found if order[b] >= order[a]]
    assert not upwards
    ground = [(package_of(m, order), b) for m in FILES for b in imports(m) if package_of(m, order) in GROUND]
    assert not [
        (a, b)
        for a, b in ground
        if package_of(b, order) not in {a, "spec.language", "spec.terminal", "semantics.errors"}
    ]


def strongly_connected(graph: Mapping[str, frozenset[str]]) -> Iterator[list[str]]:
    """The sets of modules that import each other, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(v: str) -> Iterator[list[str]]:
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in graph[v]:
            if w not in index:
                yield from visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            component, stack[at:] = stack[at:], []
            yield component

    for v in graph:
        if v not in index:
            yield from visit(v)


def test_no_files_import_each_other() -> None:
    graph = {module: imports(module) for module in FILES.keys() - FRONTS}
    graph = {module: frozenset(others & graph.keys()) for module, others in graph.items()}
    assert not [sorted(found) for found in strongly_connected(graph) if len(found) > 1]


def test_what_the_architecture_names_is_there() -> None:
    named = re.findall(r"`([a-z_/]+\.py): (\w+)`", TEXT)
    assert len(named) > 20
    for place, name in named:
        path = next(it for it in (ROOT / place, ROOT / "checker" / "certification" / place) if it.is_file())
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert name in {it.name for it in tree.body if isinstance(it, (ast.FunctionDef, ast.ClassDef))}, (place, name)
    for folder in re.findall(r"`((?:spec|semantics|checker|proofs)/[a-z0-9_/-]*/)`", TEXT):
        assert (ROOT / folder).is_dir(), folder


def test_every_package_says_what_it_holds() -> None:
    packages = {module: path for module, path in FILES.items() if path.name == "__init__.py"}
    assert not [module for module, path in packages.items() if not ast.get_docstring(ast.parse(path.read_text()))]
