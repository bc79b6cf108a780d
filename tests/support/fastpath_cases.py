"""The kernels of the fast path against the definitions: how a kernel is run, and when its outputs agree."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np
import onnx
from applications import Case, fitted
from node_tests import SINGLE, node_cases
from node_values import attribute, stored, value_of
from sonnx.semantics.model import schemas
from sonnx.semantics.model.elements import element_of
from sonnx.semantics.model.values import Optional
from sonnx.semantics.model.values import Sequence as Items
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.operators.compiled.ieee import apply
from sonnx.semantics.runtimes.fastpath.kernel import Kernel, KernelError, Site
from sonnx.semantics.runtimes.fastpath.registry import numpy_kernels
from sonnx.semantics.runtimes.fastpath.sites import admitting
from sonnx.spec.elaborate.schema import signatures
from sonnx.spec.elaborate.statements import is_rule
from sonnx.spec.library import specification

Table = Mapping[str, Sequence[Kernel]]


# ---- versions ---------------------------------------------------------------------------------


def versions(op_type: str) -> tuple[int, ...]:
    """The since_versions of an operator that the specification defines, by equations or as a primitive."""
    return tuple(
        signature.version
        for text in specification().operators[op_type]
        if not is_rule(text)
        for signature in signatures().get(op_type, ())
        if text.first <= signature.version <= text.last
    )


# ---- running ----------------------------------------------------------------------------------


@cache
def defaults(op_type: str, version: int) -> Mapping[str, Any]:
    """The attributes for which the schema states a default, as a site has them."""
    schema = schemas.schema("", op_type, version)
    if schema is None:
        raise LookupError(f"ONNX knows no {op_type} at version {version}")
    stated = {name: it.default.value for name, it in schema.attributes.items() if it.default is not None}
    return {name: _plain(value) for name, value in stated.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return tuple(_plain(item) for item in value) if isinstance(value, (tuple, list)) else value


def chosen(table: Table, application: Application) -> Kernel:
    """The entry for an application: by version, and by the element type of its first input."""
    first = application.inputs[0] if application.inputs else None
    element = element_of(first.dtype) if isinstance(first, np.ndarray) else None
    for kernel in table[application.op_type]:
        if kernel.first <= application.version <= kernel.last and (kernel.types is None or element in kernel.types):
            return kernel
    raise LookupError(f"no kernel for {application.op_type}-{application.version} on {element}")


def computed(
    table: Table, application: Application, constant: Callable[[int], bool] = lambda _: False
) -> tuple[Any, ...]:
    """What the kernel gives; Python's warnings are errors, memory from `allocate` is filled with bytes 0xA5 before.

    constant: by input position, whether the kernel is told the value when it is prepared. Raises KernelError.
    """
    inputs = application.inputs
    kernel = chosen(table, application)
    site = Site(
        application.op_type,
        application.version,
        {**defaults(application.op_type, application.version), **application.attributes},
        tuple(value if constant(position) else None for position, value in enumerate(inputs)),
        tuple(value is not None for value in inputs),
        application.outputs,
    )
    compute = admitting(schemas.schema("", application.op_type, application.version), kernel.prepare(site))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        return compute(tuple(map(_locked, inputs)), _allocate)


def _locked(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _allocate(shape: tuple[int, ...], dtype: Any) -> Any:
    memory = np.empty(shape, dtype)
    if memory.dtype != object:
        memory.reshape(-1).view(np.uint8)[...] = 0xA5
    return memory


# ---- agreement --------------------------------------------------------------------------------


def same(found: Any, expected: Any, free: Any = None, signs: bool = True, within: float = 0.0) -> bool:
    """Whether two values have one type and shape and agree in every bit, NaN with any NaN; `free` is not compared.

    signs: whether 0.0 and -0.0 differ. A sum whose terms are all -0.0 is -0.0 only where it starts with its first term.
    within: the relative difference that is allowed, where a test has derived one.
    """
    if isinstance(expected, Items):
        pairs = isinstance(found, Items) and found.inner == expected.inner and len(found.items) == len(expected.items)
        return pairs and all(map(same, found.items, expected.items))
    if isinstance(expected, Optional):
        return isinstance(found, Optional) and found.inner == expected.inner and same(found.item, expected.item)
    if expected is None or found is None:
        return expected is None and found is None
    if not isinstance(found, np.ndarray) or found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    if expected.dtype == object or expected.dtype.kind in "iub" or "int" in expected.dtype.name:
        agree = np.asarray(found == expected)
    else:
        kind = np.complex128 if expected.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            a, b = found.astype(kind), expected.astype(kind)
            zeros = np.signbit(a.real) == np.signbit(b.real) if signs else True
            agree = (np.isnan(a) & np.isnan(b)) | ((a == b) & zeros) | (np.abs(a - b) < within * np.abs(b))
    return bool(np.all(agree if free is None else agree | free))


def agreement(table: Table, application: Application, signs: bool = True, within: float = 0.0) -> str:
    """Why kernel and definition differ on an application, "" when they agree; signs, within: as for `same`.

    They agree when the outputs are the same, also where all inputs but the first are constants, or when the definition
    is stuck and the kernel raises KernelError.
    """
    expected = apply(application)
    for told in (lambda _: False, lambda position: position > 0):
        try:
            found = computed(table, application, told)
        except KernelError as error:
            if isinstance(expected, Stuck):
                continue
            return f"the kernel refuses: {error}"
        if isinstance(expected, Stuck):
            return f"the definition is stuck, {expected.premise}; the kernel gives {found}"
        for position, (a, b, free) in enumerate(zip_longest(found, expected.values, expected.free)):
            if not same(a, b, free, signs, within):
                return f"output {position} is\n{a!r} instead of\n{b!r}"
    return ""


def application(op_type: str, version: int, *inputs: Any, outputs: int = 1, **attributes: Any) -> Application:
    """An application; scalars of NumPy are tensors of rank 0."""
    given = tuple(np.asarray(x) if isinstance(x, np.generic) else x for x in inputs)
    return Application(op_type, version, given, attributes, (True,) * outputs)


def agrees(*given: Any, **stated: Any) -> None:
    """Fails where kernel and definition differ on an application, told as for `application`."""
    assert not (reason := agreement(numpy_kernels().table, application(*given, **stated))), (given, stated, reason)


def stuck(application: Application) -> bool:
    """Whether the definition is stuck on an application."""
    return isinstance(apply(application), Stuck)


# ---- the wheel --------------------------------------------------------------------------------


@cache
def wheel_tests() -> Mapping[str, tuple[Any, ...]]:
    """The node tests of the onnx wheel whose model is one node of ONNX's domain, by operator."""
    found: dict[str, list[Any]] = {}
    for case in node_cases():
        nodes = case.model.graph.node
        if len(nodes) == 1 and not nodes[0].domain and not case.model.functions:
            found.setdefault(nodes[0].op_type, []).append(case)
    return {name: tuple(cases) for name, cases in found.items()}


def wheel_failures(table: Table, op_type: str) -> Iterator[tuple[str, str]]:
    """The wheel's tests of an operator at defined versions that its kernels fail: name and reason.

    Tolerances are those that the tests state; integers, booleans and strings are compared exactly, as are special
    values. What the definition leaves open is not compared.
    """
    defined = versions(op_type)
    for case in wheel_tests().get(op_type, ()):
        for application, expected in _applications(case):
            if application.version in defined:
                reason = _failure(table, application, expected, case)
                if reason:
                    yield case.name, reason


def _applications(case: Any) -> Iterator[tuple[Application, tuple[Any, ...]]]:
    (node,) = case.model.graph.node
    opset = next(o.version for o in case.model.opset_import if o.domain == "")
    version = onnx.defs.get_schema(node.op_type, opset).since_version
    graph = case.model.graph
    types = {value.name: value.type for value in (*graph.input, *graph.output)}
    attributes = {a.name: attribute(a) for a in node.attribute}
    for inputs, outputs in case.data_sets:
        given = {i.name: stored(i) for i in graph.initializer}
        given |= {v.name: value_of(x, types[v.name]) for v, x in zip(graph.input, inputs, strict=True)}
        wanted = {v.name: value_of(x, types[v.name]) for v, x in zip(graph.output, outputs, strict=True)}
        asked = tuple(bool(name) for name in node.output)
        application = Application(
            node.op_type, version, tuple(given.get(name) for name in node.input), attributes, asked
        )
        yield application, tuple(wanted.get(name) for name in node.output)


def _failure(table: Table, application: Application, expected: tuple[Any, ...], case: Any) -> str:
    try:
        found = computed(table, application)
    except KernelError as error:
        return f"refused: {error}"
    outcome = apply(application)
    open_places = outcome.free if isinstance(outcome, Outputs) else ()
    for position, (a, b, free) in enumerate(zip_longest(found, expected, open_places)):
        if not _close(a, b, free, case):
            return f"output {position} is\n{a!r} instead of\n{b!r}"
    return ""


def _close(found: Any, expected: Any, free: Any, case: Any) -> bool:
    if isinstance(found, Items) and isinstance(expected, Items):
        return len(found.items) == len(expected.items) and all(
            _close(a, b, None, case) for a, b in zip(found.items, expected.items, strict=True)
        )
    if isinstance(found, Optional) and isinstance(expected, Optional):
        return _close(found.item, expected.item, None, case)
    if not (isinstance(found, np.ndarray) and isinstance(expected, np.ndarray)):
        return same(found, expected)
    if found.dtype == object or found.dtype.kind in "iub" or "int" in found.dtype.name:
        return same(found, expected, free)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    kind = np.complex128 if found.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        agree = np.isclose(found.astype(kind), expected.astype(kind), case.rtol, case.atol, equal_nan=True)
    return bool(np.all(agree if free is None else agree | free))


# ---- tables of tests --------------------------------------------------------------------------


def every(table: Table) -> list[tuple[str, int]]:
    """The operators of a table at each version that is defined and has a kernel there."""
    return [
        (op_type, version)
        for op_type, kernels in table.items()
        for version in versions(op_type)
        if any(kernel.first <= version <= kernel.last for kernel in kernels)
    ]


def unexpected(table: Table, op_type: str) -> list[str]:
    """The wheel's tests of an operator that its kernels fail, or that they pass though they are listed as wrong."""
    failed = dict(wheel_failures(table, op_type))
    listed = {case.name for case in wheel_tests().get(op_type, ()) if case.name in SINGLE}
    return [f"{name}: {reason}" for name, reason in failed.items() if name not in listed] + [
        f"{name} passes, though it is listed as wrong" for name in listed - set(failed)
    ]


def disagreements(
    table: Table, op_type: str, version: int, cases: Iterable[Case], signs: bool = True, within: float = 0.0
) -> list[str]:
    """What kernel and definition differ on, among the cases that fit the version."""
    fitting = [made for case in cases if (made := fitted(op_type, version, case)) is not None]
    return [f"{shown(made)}: {reason}" for made in fitting if (reason := agreement(table, made, signs, within))]


def shown(application: Application) -> str:
    """An application in one line."""
    inputs = [f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in application.inputs]
    return f"{application.op_type}-{application.version}({', '.join(inputs)}) {application.attributes}"


def unbroken(op_type: str, version: int, cases: Iterable[Case]) -> set[str]:
    """The requirements of the definition that none of the cases breaks."""
    (text,) = (text for text in specification().operators[op_type] if text.first <= version <= text.last)
    fitting = [made for case in cases if (made := fitted(op_type, version, case)) is not None]
    outcomes = [apply(made) for made in fitting]
    broken = {outcome.premise for outcome in outcomes if isinstance(outcome, Stuck)}
    return {statement.doc for statement in text.statements if statement.kind == "require"} - broken


def whole(seed: object, shape: tuple[int, ...], dtype: Any = np.float32, low: int = -3, high: int = 3) -> Any:
    """A tensor of random integers."""
    numbers = np.random.default_rng(zlib.crc32(repr((seed, shape)).encode())).integers(low, high + 1, shape)
    return numbers.astype(dtype)
