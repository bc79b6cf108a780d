"""Suites of cases: the tests of the onnx wheel, our own vectors, the ledger, random models, folders with stored data.

A suite names its cases cheaply; a case is loaded where it is run.
"""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.files.protobuf_files import value_from_proto
from sonnx.semantics.machine.inputs import declared_inputs, random_inputs
from sonnx.semantics.model.graph import Model, ValueType
from sonnx.semantics.model.loader import load
from sonnx.semantics.model.schemas import since_version
from sonnx.semantics.model.values import Value
from sonnx.semantics.resources.process import paused
from sonnx.semantics.runtimes.backend import received
from sonnx.semantics.runtimes.engines.protocol import Values
from sonnx.semantics.runtimes.engines.sources import model_of

from ..differential.outcomes import Case
from ..differential.random_models import generated
from ..differential.sizes import Finder
from ..differential.special_values import with_special_values
from . import known, vectors

WHEEL: Final = "onnx"
VECTORS: Final = "vectors"
RANDOM: Final = "random:"
"""Before a seed and a number of models, as in `random:1:500`."""
KINDS: Final = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")


@dataclass(frozen=True, slots=True)
class Reference:
    """A case by name. suite: `onnx`, `vectors`, `ledger`, `random:SEED:COUNT`, a folder or a model. at: where in it."""

    suite: str
    name: str
    at: str


def references(suite: str) -> tuple[Reference, ...]:
    """The cases of a suite, in order. Raises ModelError for a suite that is none."""
    if suite == WHEEL:
        return tuple(
            Reference(suite, f"{kind}/{test.name}", f"{kind}/{at}")
            for kind in KINDS
            for at, test in enumerate(_wheel(kind))
        )
    if suite == VECTORS:
        return tuple(Reference(suite, name, name) for name in vectors.names())
    if suite == known.SUITE:
        return tuple(Reference(suite, name, name) for name in known.entries())
    if suite.startswith(RANDOM):
        return tuple(_drawn_references(suite))
    path = Path(suite)
    if path.is_file():
        return (Reference(suite, path.name, str(path)),)
    if not path.is_dir():
        there = "`onnx`, `vectors`, `ledger`, `random:SEED:COUNT`, a folder, or a model"
        raise ModelError(f"no suite {suite!r}: name {there}")
    return tuple(_in_folder(suite, path))


def loaded(reference: Reference) -> tuple[Case, ...]:
    """The cases behind a reference, one for each set of inputs. Raises ModelError."""
    if reference.suite == WHEEL:
        kind, _, at = reference.at.partition("/")
        return tuple(_wheel_cases(reference.name, kind, _wheel(kind)[int(at)]))
    if reference.suite == VECTORS:
        case = vectors.vector(reference.at)
        return () if case is None else (case,)
    if reference.suite == known.SUITE:
        return (known.case_of(reference.at),)
    if reference.suite.startswith(RANDOM):
        return tuple(_drawn(reference))
    return tuple(_file_cases(reference.name, Path(reference.at)))


def is_large(reference: Reference) -> bool:
    """A case is a whole model, which takes long."""
    small = reference.suite in (WHEEL, VECTORS, known.SUITE) or reference.suite.startswith(RANDOM)
    return not small or reference.name.startswith("real/")


def operators_of(model: Model) -> tuple[str, ...]:
    """The operators of a model with their versions, each once, those of functions expanded."""
    spelled = (f"{f'{n.domain}::' if n.domain else ''}{n.op_type}-{n.version}" for n in model.nodes)
    return tuple(dict.fromkeys(spelled))


# ---- The wheel --------------------------------------------------------------------------------


_made: dict[str, tuple[Any, ...]] = {}
"""The tests of the wheel by kind, made once in a process."""


def _wheel(kind: str) -> tuple[Any, ...]:
    if kind not in _made:
        from onnx.backend.test.loader import load_model_tests

        with paused(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            _made[kind] = tuple(load_model_tests(kind=kind))
    return _made[kind]


def packed() -> bytes:
    """The tests of the wheel that this process has made, for others that need not make them: that takes seconds."""
    return pickle.dumps(_made)


def unpack(tests: bytes) -> None:
    """Takes over what another process has `packed`."""
    _made.update(pickle.loads(tests))


def _wheel_cases(name: str, kind: str, test: Any) -> Iterator[Case]:
    if kind == "node":
        content = test.model.SerializeToString()
        model = model_of(content)  # kept for the engines, which ask for it next
        about = re.sub(r"^test_(cpu_)?", "", test.name)
        for number, (inputs, outputs) in enumerate(test.data_sets):
            names = list(declared_inputs(model))
            feeds = _named(model, names, inputs)
            results = [model.tensors[t].name for t in model.graphs[0].outputs]
            expected = _named(model, results, outputs)
            yield Case(_numbered(name, number, len(test.data_sets)), content, feeds, _tags(model, about), expected)
    elif kind == "real":
        path = (
            Path(onnx.__file__).parent
            / "backend/test/data/light"
            / f"light_{test.model_name.removeprefix('test_')}.onnx"
        )
        model = load(path)
        feeds = {}
        for given, (_, stated, needed) in declared_inputs(model).items():
            if needed and stated is not None and stated.shape is not None:
                shape = tuple(size if isinstance(size, int) else 1 for size in stated.shape)
                count = int(np.prod(shape))
                feeds[given] = (np.arange(count).reshape(shape) / count).astype(np.float32)
        yield Case(name, path.read_bytes(), feeds, _tags(model, test.name))
    else:
        yield from _file_cases(name, Path(test.model_dir) / "model.onnx")


def _named(model: Model, names: list[str], values: Any) -> dict[str, Value]:
    named_values: dict[str, Value] = {}
    declared: dict[str, ValueType | None] = {it.name: it.declared for it in model.tensors if it.graph == 0}
    for name, value in zip(names, values, strict=False):
        if isinstance(value, (onnx.TensorProto, onnx.SequenceProto, onnx.OptionalProto)):
            named_values[name] = value_from_proto(value.SerializeToString(), declared.get(name))
        else:
            named_values[name] = received(value, declared.get(name))
    return named_values


# ---- Random models ----------------------------------------------------------------------------


def _drawn_references(suite: str) -> Iterator[Reference]:
    seed, _, count = suite.removeprefix(RANDOM).partition(":")
    if not (seed.isascii() and seed.isdecimal() and count.isascii() and count.isdecimal()):
        raise ModelError(f"no suite {suite!r}: a seed and a number of models, as in random:1:500")
    for number in range(int(count)):
        yield Reference(suite, f"random/{seed}-{number}", f"{seed} {number}")


def _drawn(reference: Reference) -> Iterator[Case]:
    """A model on the inputs that it was made with, and on special values."""
    seed, number = map(int, reference.at.split())
    model = generated((seed, number), _finder())
    if model is None:
        return
    tags = {"operators": " ".join(model.operators), "operator": model.operators[0], "opset": str(model.opset)}
    yield Case(reference.name, model.model, model.feeds, tags)
    if model.feeds and not model.violated:
        special = {**model.feeds, **with_special_values(model.feeds, seed + number)}
        yield Case(f"{reference.name}#special", model.model, special, tags)


@cache
def _finder() -> Finder:
    """One in a process: it keeps what it has translated."""
    return Finder()


# ---- Folders and files ------------------------------------------------------------------------


def _in_folder(suite: str, folder: Path) -> Iterator[Reference]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".onnx", ".onnxtxt") and path.is_file():
            yield Reference(suite, path.relative_to(folder).as_posix(), str(path))


def _file_cases(name: str, path: Path) -> Iterator[Case]:
    """A model with the sets of data beside it, laid out as ONNX's backend tests; without them, inputs are drawn."""
    model = load(path)
    tags = _tags(model, path.parent.name)
    sets = sorted(path.parent.glob("test_data_set_*"))
    source = model.content or path.absolute()
    for number, folder in enumerate(sets):
        feeds = _stored(folder, "input", list(declared_inputs(model)), model)
        results = [model.tensors[t].name for t in model.graphs[0].outputs]
        yield Case(_numbered(name, number, len(sets)), source, feeds, tags, _stored(folder, "output", results, model))
    if not sets:
        drawn, _ = random_inputs(model, 0)
        yield Case(name, source, drawn, tags)


def _stored(folder: Path, what: str, names: list[str], model: Model) -> Values:
    declared = {it.name: it.declared for it in model.tensors if it.graph == 0}
    values: dict[str, Value] = {}
    for number, name in enumerate(names):
        file = folder / f"{what}_{number}.pb"
        if file.exists():
            values[name] = value_from_proto(file.read_bytes(), declared.get(name))
    return values


def _numbered(name: str, number: int, count: int) -> str:
    return name if count == 1 else f"{name}#{number}"


def _tags(model: Model, about: str) -> Mapping[str, str]:
    operators = operators_of(model)
    domains = dict(model.opsets)
    main = next((it for it in operators if since_version("", it.rpartition("-")[0], domains.get("")) is not None), "")
    single = operators[0] if len(operators) == 1 else _named_by(about, operators) or main
    return {"operators": " ".join(operators), "operator": single, "opset": str(domains.get("", ""))}


def _named_by(about: str, operators: tuple[str, ...]) -> str:
    plain = about.replace("_", "").lower()
    fits = [it for it in operators if plain.startswith(it.rpartition("-")[0].lower())]
    return max(fits, key=len, default="")
