"""The layers spec <- semantics <- checker <- proofs, and who may import what, read off the imports of every module."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = ("spec", "semantics", "checker", "proofs")
STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)
"""What statements stand in; an expression holds none."""

ONNX_MODULES = {
    # schema look-up
    "spec.elaborate.schema",
    "semantics.model.schemas",
    # loader
    "semantics.model.loader.build",
    "semantics.model.loader.functions",
    "semantics.model.loader.listing",
    "semantics.model.loader.text",
    "semantics.model.loader.values",
    "semantics.model.type_protos",
    # a model is written
    "semantics.model.writing",
    # rewrites for onnxscript
    "checker.equivalence.optimizing.onnxscript_rules",
    # the machine as one of ONNX's backends
    "semantics.runtimes.backend",
    # inputs of a run in protobuf files
    "semantics.machine.files.protobuf_files",
    # shape inference, in a process of its own
    "semantics.facts.inference.model",
    "semantics.facts.inference.pieces",
    "semantics.facts.inference.worker",
    # engines: a model that shows its values, and the worker of runtimes that are written in Python
    "semantics.runtimes.engines.python_worker",
    "semantics.runtimes.engines.tapping",
    # random models, made and made small; the cases of the wheel
    "checker.runtimes.bisection.changes",
    "checker.runtimes.conformance.known",
    "checker.runtimes.conformance.suites",
    "checker.runtimes.conformance.vectors",
    "checker.runtimes.differential.random_models",
    "checker.runtimes.differential.reduction",
    # the examples that the package builds
    "checker.certification.examples",
    # the rechecker's own reading of models, schemas and types, and its own call of shape inference
    "checker.rechecker.attributes",
    "checker.rechecker.facts",
    "checker.rechecker.files",
    "checker.rechecker.inference",
    "checker.rechecker.inference_worker",
    "checker.rechecker.listing",
    "checker.rechecker.operators.control",
    "checker.rechecker.operators.knowledge",
    "checker.rechecker.operators.lists",
    "checker.rechecker.operators.schema",
    "checker.rechecker.operators.walk",
    "checker.rechecker.reader",
    "checker.rechecker.schema",
    "checker.rechecker.stored",
    "checker.rechecker.stretches",
    "checker.rechecker.tables.computed",
    "checker.rechecker.tables.functions",
    "checker.rechecker.tables.model",
    "checker.rechecker.tables.operators",
    "checker.rechecker.tables.typing",
    "checker.rechecker.transforms.alike",
    "checker.rechecker.transforms.folding",
    "checker.rechecker.transforms.graphs",
    "checker.rechecker.transforms.matching",
    "checker.rechecker.transforms.replay",
    "checker.rechecker.valuetypes",
}
"""The modules that import onnx, other than for types."""

COMMANDS = {"spec.cli", "spec.commands.spec", "semantics.facts.inference.worker"}
"""The modules besides the `commands` packages that write to standard output or error: it is their task."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(p): p for layer in LAYERS for p in sorted((ROOT / layer).rglob("*.py"))}

FILES = [*MODULES.values(), *sorted((ROOT / "tests").rglob("*.py"))]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def tree(module: str) -> ast.Module:
    return parsed(MODULES[module])


def nodes(node: ast.AST, types: bool) -> Iterator[ast.stmt]:
    """All statements below; without `types` not those under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        guarded = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if isinstance(child, STATEMENTS) and (types or not guarded):
            if isinstance(child, ast.stmt):
                yield child
            yield from nodes(child, types)


@cache
def imports(module: str, types: bool = True) -> frozenset[str]:
    """The absolute names that a module imports, wherever it does; `from a import b` gives a and a.b."""
    found: set[str] = set()
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in nodes(tree(module), types):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = f"sonnx.{package}".split(".")
                base = ".".join(above[: len(above) - node.level + 1] + ([node.module] if node.module else []))
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return frozenset(found)


def own(names: Iterable[str]) -> set[str]:
    """Those of the names that are modules of this package, without `sonnx.`."""
    return {name.removeprefix("sonnx.") for name in names if name.startswith("sonnx.")} & MODULES.keys()


def reaches(module: str) -> set[str]:
    """What a module imports when it runs, directly or through modules of this package; packages on the way included."""
    seen: set[str] = set()
    outside: set[str] = set()
    waiting = [module]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        names = imports(current, types=False)
        outside |= names
        waiting += own(names) | {current.rpartition(".")[0]} & MODULES.keys()
    return {f"sonnx.{name}" for name in seen} | outside


def test_there_are_modules_to_judge() -> None:
    assert {"spec.library", "semantics.model.graph", "checker.certification.report"} <= MODULES.keys()


def test_a_module_imports_only_from_its_own_layer_and_those_below() -> None:
    for module in MODULES:
        allowed = LAYERS[: LAYERS.index(module.partition(".")[0]) + 1]
        layers = {name.split(".")[1] for name in imports(module) if name.startswith("sonnx.")}
        assert layers <= set(allowed), module


def test_a_module_imports_its_own_layer_relatively() -> None:
    wrong = []
    for module in MODULES:
        layer = f"sonnx.{module.partition('.')[0]}."
        written = [n for n in nodes(tree(module), types=True) if isinstance(n, ast.ImportFrom) and not n.level]
        wrong += [f"{module}:{n.lineno}" for n in written if f"{n.module}.".startswith(layer)]
    assert not wrong


def test_no_layer_is_imported_without_the_package() -> None:
    wrong = []
    for path in FILES:
        for node in nodes(parsed(path), types=True):
            match node:
                case ast.Import(names=names):
                    roots = {alias.name.partition(".")[0] for alias in names}
                case ast.ImportFrom(module=str(name), level=0):
                    roots = {name.partition(".")[0]}
                case _:
                    continue
            if roots & set(LAYERS):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong


def test_onnx_is_imported_by_the_listed_modules_only() -> None:
    found = {m for m in MODULES if any(n.partition(".")[0] == "onnx" for n in imports(m, types=False))}
    assert found - ONNX_MODULES == set(), "list the module in ONNX_MODULES, or reach onnx through one that is listed"
    assert ONNX_MODULES - found == set(), "these are listed and do not import onnx"


def test_z3_is_imported_by_the_solver_only() -> None:
    assert {m for m in MODULES if any(n.partition(".")[0] == "z3" for n in imports(m))} == {"checker.smt.solver"}


RECHECKER_SHARES = {"sonnx.checker", "sonnx.semantics", "sonnx.semantics.errors"}
"""What the rechecker imports of this package besides its own modules: two empty fronts, and the types of errors."""
RECHECKER_NEEDS = {"google", "lark", "numpy", "onnx"}
"""The distributions that it imports; CERTIFICATE.md lists them."""


def test_the_rechecker_shares_nothing_but_the_types_of_errors() -> None:
    reached = reaches("checker.rechecker")
    own = {name for name in reached if name.startswith("sonnx.")}
    known = {f"sonnx.{module}" for module in MODULES}
    assert "sonnx.checker.rechecker.reader" in reached
    assert {it for it in own & known if not it.startswith("sonnx.checker.rechecker")} == RECHECKER_SHARES
    outside = {name.partition(".")[0] for name in reached} - {"sonnx", "__future__"}
    assert outside - sys.stdlib_module_names == RECHECKER_NEEDS


def test_the_command_reaches_no_more_than_the_rechecker() -> None:
    assert own(reaches("checker.commands.recheck")) - own(reaches("checker.rechecker")) == {
        "checker.commands",
        "checker.commands.recheck",
        "spec",
        "spec.project",
    }


def test_nothing_but_commands_imports_the_rechecker() -> None:
    users = {
        m
        for m in MODULES
        if any(name.startswith("sonnx.checker.rechecker") for name in imports(m, types=False))
        and not m.startswith("checker.rechecker")
    }
    assert users == {"checker.commands.recheck", "checker.commands.equiv"}  # this one offers what can be replayed


def test_a_loaded_rechecker_has_loaded_neither_solver_nor_certifier() -> None:
    program = "import sys; from sonnx.checker import recheck; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "sonnx.checker.rechecker" in loaded
    others = {name for name in loaded if name.startswith("sonnx.") and ".rechecker" not in name}
    assert "z3" not in loaded
    assert others == RECHECKER_SHARES


def test_no_check_is_an_assert_statement() -> None:
    assert not [f"{m}:{n.lineno}" for m in MODULES for n in ast.walk(tree(m)) if isinstance(n, ast.Assert)]


def test_only_commands_print() -> None:
    writes = {"print", "click.echo", "sys.stdout.write", "sys.stderr.write"}
    assert not [
        f"{module}:{node.lineno}"
        for module in MODULES.keys() - COMMANDS
        if ".commands" not in module
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
        if ast.unparse(node.func) in writes
    ]


def test_every_layer_says_that_it_is_typed() -> None:
    assert all((ROOT / layer / "py.typed").is_file() for layer in {module.partition(".")[0] for module in MODULES})
