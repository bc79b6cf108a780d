"""Operators that hold graphs: their bodies with what is known of the tensors that come in.

The rules Step/if, Step/loop and Step/scan of part 3 before a run. A body of If is looked at under its condition. A body
that runs again and again is looked at for any run: what Loop and Scan carry is assumed to have the sizes with which it
comes in, and shown to have them after a run; a size for which that fails is open. What is known within a body is not
known outside, and nothing that a body needs holds outside unless the body runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import onnx

from . import elements as el
from . import formulas as fm
from .formulas import Formula, Int, Poly, Unknown
from .knowledge import Content, Derivation, compared, free, nothing, put, settle, text_of, unexamined
from .lists import VARIES, bare, forms_of, held, is_optional, length_of
from .node import alternative
from .operations import read
from .values import Element, Entries, Listed, Open, Tensor, Value


def _bodies(walk: Derivation, n: int) -> dict[str, int]:
    """The bodies of a node by attribute."""
    graphs = walk.graph.reading.graphs
    return {graphs[b].path.rpartition(".")[2]: b for b in walk.node(n).bodies}


def _input(walk: Derivation, n: int, position: int) -> Content | None:
    row = walk.node(n).inputs
    t = row[position] if position < len(row) else None
    return None if t is None else walk.contents.get(t, Open("it has no value"))


def _given(walk: Derivation, n: int, position: int) -> Content:
    content = _input(walk, n, position)
    return Open("it has no value") if content is None else content


def _outputs(walk: Derivation, body: int) -> list[Content]:
    return [walk.contents.get(t, Open("it has no value")) for t in walk.graph.reading.graphs[body].outputs]


def _asked(walk: Derivation, n: int, goal: Formula, contents: Sequence[Content | None]) -> None:
    """Notes what the rule of part 3 asks of a node, and takes it for granted behind it."""
    text = text_of(walk, n)
    open_one = next((c for c in map(_open, contents) if c is not None), None)
    if text is not None:
        operator, _ = text
        rule = f"{operator.name}-{operator.first}/step"
        put(walk, n, rule, operator.doc, "require", goal if open_one is None else open_one)
    if open_one is None and goal is not False:
        walk.run.facts.add(fm.either(*map(fm.opposite, walk.run.path), goal))


def _open(content: Content | None) -> Open | None:
    """Why the shape of a content is open."""
    match content:
        case Open():
            return content
        case Tensor(shape=None):
            return Open(content.reason, content.on_data)
        case Entries() | Listed():
            return Open("a sequence stands for a tensor")
        case _:
            return None


def _one(content: Content | None) -> Formula:
    """That a tensor, if it is there, has one element."""
    count: Int = 1
    for size in content.shape or () if isinstance(content, Tensor) else ():
        count = fm.multiply(count, size)
    return fm.equal(count, 1)


def _element_of(walk: Derivation, content: Content | None) -> Element | None:
    if not isinstance(content, Tensor) or content.shape is None:
        return None
    try:
        value = read(content, (0,) * len(content.shape), walk.run)
    except Open:
        return None
    return value if isinstance(value, Element) else None


def _truth(walk: Derivation, content: Content | None, name: str) -> Formula:
    """The truth value that a tensor holds."""
    value = _element_of(walk, content)
    if value is None:
        return Unknown(name)
    try:
        condition = el.as_truth(value)
    except Open:
        return Unknown(name)
    known = walk.run.decided(condition)
    return condition if known is None else known


def _bare(content: Content) -> Content:
    """Type and shape alone."""
    if isinstance(content, Tensor):
        return Tensor(content.name, content.kind, content.shape, reason=content.reason, on_data=content.on_data)
    return content


# ---- If -----------------------------------------------------------------------------------------


def _if(walk: Derivation, n: int) -> None:
    bodies = _bodies(walk, n)
    given = _input(walk, n, 0)
    _asked(walk, n, _one(given), [given])
    condition = _truth(walk, given, f"n{n}.condition")
    results: list[tuple[Formula, list[Content]]] = []
    for name, holds in (("then_branch", condition), ("else_branch", fm.opposite(condition))):
        if name not in bodies or holds is False:
            continue
        with walk.run.within(() if holds is True else (holds,), once=holds is True):
            walk.follow(walk, bodies[name])
        results.append((holds, _outputs(walk, bodies[name])))
    for position, t in enumerate(walk.node(n).outputs):
        if t is not None:
            cases = [(holds, row[position]) for holds, row in results if position < len(row)]
            settle(walk, n, t, _either(cases) if cases else Open("no branch gives a value"))


def _either(cases: Sequence[tuple[Formula, Content]]) -> Content:
    """The content of a tensor that is one or the other."""
    (holds, first), (_, other) = cases[0], cases[-1]
    if len(cases) == 1 or other is first:
        return first
    if isinstance(first, Open) or isinstance(other, Open):
        return next(
            (c for c in (first, other) if isinstance(c, Open) and not c.data),
            first if isinstance(first, Open) else other,
        )
    content = alternative(holds, first, other)
    return content if isinstance(content, Tensor | Entries | Listed | Open) else Open("no tensor")


# ---- Bodies that run again and again ------------------------------------------------------------


def _enter(walk: Derivation, n: int, body: int, given: Mapping[int, Content]) -> None:
    for t, content in given.items():
        walk.contents[t] = replace(content, name=f"t{t}", memory={}) if isinstance(content, Tensor) else content
        compared(walk, n, t, content)
    walk.follow(walk, body)


def _repeated(
    walk: Derivation,
    n: int,
    body: int,
    fixed: Mapping[int, Content],
    carried: Mapping[int, Content],
    back: Sequence[int],
) -> None:
    """A body whose inputs `carried` get, after each run, what its outputs `back` are.

    Each pass makes open what a run does not keep, so that passes end; the last one shows what it assumes.
    """
    assumed = dict(carried)
    path = walk.run.path
    walk.silent, walk.run.trial = walk.silent + 1, walk.run.trial + 1
    while True:
        facts = walk.run.facts.copy()
        _enter(walk, n, body, {**fixed, **assumed})
        after = [walk.contents.get(source, Open("the body gives no value")) for source in back]
        walk.run.path, walk.run.facts = path, facts
        changed = False
        for (t, before), then in zip(list(assumed.items()), after, strict=False):
            general = _general(walk, t, before, then)
            if general is not before:
                assumed[t], changed = general, True
        if not changed:
            break
    walk.silent, walk.run.trial = walk.silent - 1, walk.run.trial - 1
    _enter(walk, n, body, {**fixed, **assumed})


def _general(walk: Derivation, t: int, before: Content, after: Content) -> Content:
    """The content of a carried value before and after a run; `before` itself where that is it."""
    if isinstance(before, Open) or isinstance(after, Open):
        return before if isinstance(before, Open) else after
    if not isinstance(before, Tensor) or not isinstance(after, Tensor):
        return _general_list(walk, t, before, after, "length")
    kind = before.kind if before.kind == after.kind else ""
    if before.shape is None:
        return before if kind == before.kind else replace(before, kind=kind)
    if after.shape is None:
        return Tensor(before.name, kind, None, reason=after.reason, on_data=after.on_data)
    if len(before.shape) != len(after.shape):
        why = "the number of axes changes from run to run, which is not followed here"
        return Tensor(before.name, kind, None, reason=why, on_data=False)
    shape = tuple(
        a if a == b or walk.run.holds(fm.equal(a, b)) or _own(t, a) else free(walk, f"t{t}.size.{axis}")
        for axis, (a, b) in enumerate(zip(before.shape, after.shape, strict=True))
    )
    return before if shape == before.shape and kind == before.kind else Tensor(before.name, kind, shape)


def _general_list(walk: Derivation, t: int, before: Content, after: Content, name: str) -> Content:
    """The content of a carried sequence or optional: its entries are like those before or those of a run."""
    kinds = [c.kind for c in (before, after) if isinstance(c, Entries | Listed)]
    optional = next((kind for kind in kinds if is_optional(kind)), "")
    one, other = (_as_optional(c, optional) for c in (before, after))
    if not isinstance(one, Entries | Listed) or not isinstance(other, Entries | Listed) or one.kind != other.kind:
        return Open("a value of one type or another")
    if one == other:
        return before
    length = length_of(one)
    if length != length_of(other):
        length = length if _own_length(t, length) else free(walk, f"t{t}.{name}")
    forms: list[Value] = []
    for form in (*forms_of(one), *forms_of(other)):
        _add_form(walk, t, forms, form, name)
    listed = Listed(one.kind, length, tuple(forms))
    return before if listed == before else listed


def _own_length(t: int, length: Int) -> bool:
    return (
        isinstance(length, Poly)
        and len(length.terms) == 1
        and re.match(rf"1\*t{t}\.[a-z.]*length#", length.key) is not None
    )


def _as_optional(content: Content, optional: str) -> Content:
    if (
        not optional
        or isinstance(content, Open)
        or (isinstance(content, Entries | Listed) and is_optional(content.kind))
    ):
        return content
    return held(optional, content)


def _add_form(walk: Derivation, t: int, forms: list[Value], form: Value, name: str = "length") -> None:
    """Adds what an entry can be like: one form for each number of axes, so that there are finitely many."""
    form = bare(form)
    holder = walk.graph.reading.graphs[walk.graph.reading.tensors[t].graph].holder
    if isinstance(form, Tensor) and form.shape is not None and holder is not None:
        start = walk.starts.get(holder, walk.run.fresh)
        own = (VARIES if isinstance(s, Poly) and _varies(walk, holder, s, start) else s for s in form.shape)
        form = Tensor("", form.kind, tuple(own))
    for k, other in enumerate(forms):
        if other == form:
            return
        if isinstance(form, Tensor) and isinstance(other, Tensor):
            if form.shape is None and other.shape is None:
                return
            if form.shape is not None and other.shape is not None and len(form.shape) == len(other.shape):
                pairs = zip(other.shape, form.shape, strict=True)
                kind = other.kind if other.kind == form.kind else ""
                forms[k] = Tensor("", kind, tuple(a if a == b else VARIES for a, b in pairs))
                return
        elif isinstance(form, Entries | Listed) and isinstance(other, Entries | Listed):
            joined = _general_list(walk, t, other, form, f"inner.{name}")
            if isinstance(joined, Entries | Listed):
                forms[k] = joined
            return
    forms.append(form)


def _own(t: int, size: Int) -> bool:
    """A size is open, one for each run."""
    return isinstance(size, Poly) and len(size.terms) == 1 and size.key.startswith(f"1*t{t}.size.")


def _final(walk: Derivation, n: int, output: int, t: int) -> None:
    """The value after the last run; sizes that differ from run to run are those of no run that began."""
    state = _bare(walk.contents.get(t, Open("it has no value")))
    if isinstance(state, Tensor) and state.shape is not None:
        sizes = (free(walk, f"t{output}.size.{k}") if _own(t, s) else s for k, s in enumerate(state.shape))
        state = replace(state, shape=tuple(sizes))
    settle(walk, n, output, state)


def _within(walk: Derivation, runs: Sequence[Formula], body: Callable[[], None]) -> None:
    """With what holds where a body runs."""
    with walk.run.within(runs):
        body()


def _loop(walk: Derivation, n: int) -> None:
    node, body = walk.node(n), _bodies(walk, n).get("body")
    if body is None:
        return nothing(walk, n, Open("the node has no body"))
    inner = walk.graph.reading.graphs[body]
    limit, going = _input(walk, n, 0), _input(walk, n, 1)
    _asked(walk, n, fm.both(_one(limit), _one(going)), [limit, going])
    value = _element_of(walk, limit)
    trips = el.as_integer(value) if value is not None and value.kind in el.INTEGERS else None
    if trips is None and limit is not None:
        trips = free(walk, f"n{n}.trips")
    begins = True if going is None else _truth(walk, going, f"n{n}.condition")
    number = free(walk, f"n{n}.run")
    runs: list[Formula] = []
    if isinstance(trips, int) and trips > 0:
        walk.run.facts.add(fm.at_least(trips, fm.add(number, 1)))
    elif trips is not None:
        runs.append(fm.at_least(trips, fm.add(number, 1)))
    if begins is not True:
        runs.append(begins)
    fixed: dict[int, Content] = {
        t: Tensor(f"t{t}", "int64", (), lambda index: Element("int64", number)) for t in inner.inputs[:1]
    }
    carried: dict[int, Content] = {
        t: _bare(Tensor("", "bool", ()) if going is None else going) for t in inner.inputs[1:2]
    }
    for position, t in enumerate(inner.inputs[2:]):
        content = _input(walk, n, position + 2)
        carried[t] = Open("the loop carries no value here") if content is None else _bare(content)
    start = walk.starts[n] = walk.run.fresh
    results: list[Content] = []

    def inside() -> None:
        _repeated(walk, n, body, fixed, carried, inner.outputs)
        results.extend(_outputs(walk, body))
        if going is not None and results:
            _asked(walk, n, _one(results[0]), results[:1])

    _within(walk, runs, inside)
    for position, output in enumerate(node.outputs):
        if output is None:
            continue
        t = output
        if position + 1 >= len(results):
            settle(walk, n, t, Open("it has no value"))
        elif 2 + position < len(inner.inputs):
            _final(walk, n, t, inner.inputs[2 + position])
        else:
            count = _count(walk, t, trips, surely=not runs, ended=going is not None)
            _stacked(walk, n, t, inner.outputs[position + 1], count, 0, runs, start)
    return None


def _count(walk: Derivation, t: int, trips: Int | None, *, surely: bool, ended: bool) -> Int:
    """The number of runs of a Loop. ended: a condition may end it early."""
    most: Int | None = None
    if trips is not None:
        most = max(trips, 0) if isinstance(trips, int) else fm.greater(trips, 0)
    if most is not None and not ended:
        return most
    count = free(walk, f"t{t}.size.0")
    walk.run.facts.add(fm.at_least(count, 1 if surely else 0))
    if most is not None:
        walk.run.facts.add(fm.at_least(most, count))
    return count


def _stacked(
    walk: Derivation, n: int, t: int, source: int, count: Int, axis: int, runs: Sequence[Formula], start: int
) -> None:
    """The results of the runs, one after the other along an axis: each run the same shape. Where the body does not run,
    the sizes are those that it declares, 0 for one that is no number (Step/loop-none, Step/scan-none)."""
    result = walk.contents.get(source, Open("it has no value"))
    open_one = _open(result)
    if open_one is not None or not isinstance(result, Tensor):
        return settle(walk, n, t, open_one or Open("the runs give no shape"))
    shape = list(result.shape or ())
    at = axis + len(shape) + 1 if axis < 0 else axis
    _asked(walk, n, 0 <= at <= len(shape), [])
    shape = _of_all_runs(walk, n, t, shape, runs, start)
    if runs:
        some = fm.at_least(count, 1)
        declared = next(
            (p.tensor_type.shape.dim for _, p in walk.stated.get(source, ())
             if p.WhichOneof("value") == "tensor_type" and p.tensor_type.HasField("shape")), None
        )  # fmt: skip
        if declared is None:
            _asked(walk, n, some, [])
        elif len(declared) != len(shape):
            return settle(walk, n, t, Open("the number of axes depends on whether the body runs", data=True))
        else:
            unrun = [int(d.dim_value) if d.HasField("dim_value") and d.dim_value >= 0 else 0 for d in declared]
            known = walk.run.decided(some)
            shape = [s if s == u or known else fm.chosen(some, s, u) for s, u in zip(shape, unrun, strict=True)]
    return settle(walk, n, t, Tensor("", result.kind, (*shape[:at], count, *shape[at:])))


def _of_all_runs(
    walk: Derivation, n: int, t: int, shape: Sequence[Int], runs: Sequence[Formula], start: int
) -> list[Int]:
    """The shape that every run gives. A size that may differ from run to run is required not to."""
    sizes: list[Int] = []
    for k, size in enumerate(shape):
        if not isinstance(size, Poly) or not _varies(walk, n, size, start):
            sizes.append(size)
            continue
        one = free(walk, f"t{t}.size.of.{k}")
        sizes.append(one)
        _within(walk, runs, partial(_asked, walk, n, fm.equal(size, one), []))
    return sizes


def _varies(walk: Derivation, n: int, size: Poly, start: int) -> bool:
    """A size can differ from run to run: it mentions what belongs to a body of the node."""
    return any(_belongs(walk, n, s.key, start) for s in fm.base_symbols(size) if s.kind == "data")


def _belongs(walk: Derivation, n: int, key: str, start: int) -> bool:
    if f"n{n}.run" in key:
        return True
    tensors = [int(m) for m in re.findall(r"\bt(\d+)\b", key)]
    graphs = [walk.graph.reading.tensors[t].graph for t in tensors if t < len(walk.graph.reading.tensors)]
    if not graphs:
        made = re.search(r"#(\d+)$", key)
        return made is None or int(made[1]) > start
    return any(_lies_in(walk, n, g) for g in graphs)


def _lies_in(walk: Derivation, n: int, g: int) -> bool:
    graphs, nodes = walk.graph.reading.graphs, walk.graph.reading.nodes
    holder = graphs[g].holder
    while holder is not None:
        if holder == n:
            return True
        holder = graphs[nodes[holder].graph].holder
    return False


# ---- Scan ---------------------------------------------------------------------------------------


def _scan(walk: Derivation, n: int) -> None:
    node, body = walk.node(n), _bodies(walk, n).get("body")
    stated = node.attributes.get("num_scan_inputs")
    if body is None or stated is None:
        reason = Open("the node has no body, or does not say what it scans")
        for b in node.bodies:
            unexamined(walk, b, reason)
        return nothing(walk, n, reason)
    inner = walk.graph.reading.graphs[body]
    scanned, batched = int(stated.i), (node.opset or 0) < 9
    first = 1 if batched else 0
    states = len(node.inputs) - first - scanned
    axes = [0] * scanned if batched else _axes(node.attributes.get("scan_input_axes"), scanned)
    sizes: list[Int] = []
    batches: list[Int] = []
    fixed: dict[int, Content] = {}
    carried: dict[int, Content] = {}
    contents: list[Content] = []
    for position, t in enumerate(inner.inputs):
        content = _given(walk, n, first + position)
        contents.append(content)
        if batched:
            content = _slice(content, 0, batches)
        if position < states:
            carried[t] = _bare(content)
        else:
            fixed[t] = _slice(content, axes[position - states] if position - states < len(axes) else 0, sizes)
    fits = [fm.equal(s[0], other) for s in (sizes, batches) for other in s[1:]]
    lengths = _input(walk, n, 0) if batched else None
    _asked(walk, n, fm.both(*fits, len(sizes) == scanned), contents)
    if lengths is not None:
        shape = lengths.shape or () if isinstance(lengths, Tensor) else ()
        fit = fm.equal(shape[0], batches[0]) if len(shape) == 1 and batches else False
        _asked(walk, n, fm.both(fit, Unknown(f"the lengths of n{n}")), [lengths])
    length: Int = sizes[0] if sizes else free(walk, f"n{n}.length")
    batch: Int = batches[0] if batches else 1
    runs: list[Formula] = [] if lengths is None else [Unknown(f"n{n}.some")]
    runs += [c for c in (fm.at_least(length, 1), fm.at_least(batch, 1)) if not walk.run.holds(c)]
    start = walk.starts[n] = walk.run.fresh
    _within(walk, runs, lambda: _repeated(walk, n, body, fixed, carried, inner.outputs))
    count = len(inner.outputs) - states
    out_axes = [0] * max(count, 0) if batched else _axes(node.attributes.get("scan_output_axes"), count)
    for position, output in enumerate(node.outputs):
        if output is None:
            continue
        t = output
        if position >= len(inner.outputs) or len(inner.inputs) <= position < states:
            settle(walk, n, t, Open("it has no value"))
        elif position < states:
            state = walk.contents.get(inner.inputs[position])
            if batched and isinstance(state, Tensor) and state.shape is not None:
                walk.contents[inner.inputs[position]] = replace(state, shape=(batch, *state.shape), memory={})
            _final(walk, n, t, inner.inputs[position])
        elif not batched:
            _stacked(walk, n, t, inner.outputs[position], length, out_axes[position - states], runs, start)
        else:
            _of_batch(walk, n, t, inner.outputs[position], length, batch, runs, start)
    return None


def _of_batch(
    walk: Derivation, n: int, t: int, source: int, length: Int, batch: Int, runs: Sequence[Formula], start: int
) -> None:
    """A scan output of version 8: the elements of all runs, for all sequences of the batch."""
    result = walk.contents.get(source, Open("it has no value"))
    open_one = _open(result)
    if open_one is not None or runs or not isinstance(result, Tensor):
        return settle(walk, n, t, open_one or Open("how often the body of this Scan runs is open", data=True))
    shape = _of_all_runs(walk, n, t, result.shape or (), runs, start)
    return settle(walk, n, t, Tensor("", result.kind, (batch, length, *shape)))


def _axes(stated: onnx.AttributeProto | None, count: int) -> list[int]:
    axes = [] if stated is None else [int(axis) for axis in stated.ints]
    return axes if len(axes) == count else [0] * max(count, 0)


def _slice(content: Content, axis: int, lengths: list[Int]) -> Content:
    """One element of a scan input; the number of elements is noted."""
    open_one = _open(content)
    if open_one is not None or not isinstance(content, Tensor):
        return open_one or Open("it has no value")
    shape = content.shape or ()
    if not -len(shape) <= axis < len(shape):
        return Open("a scan axis is out of range")
    axis %= len(shape)
    lengths.append(shape[axis])
    return Tensor("", content.kind, shape[:axis] + shape[axis + 1 :])


def _map(walk: Derivation, n: int) -> None:
    node, body = walk.node(n), _bodies(walk, n).get("body")
    given = [_given(walk, n, k) for k in range(len(node.inputs))]
    lists = [content for content in given if isinstance(content, Entries | Listed)]
    if body is None or not given or not lists or lists[0] is not given[0]:
        reason = Open("the node has no body, or its first input is no sequence")
        for b in node.bodies:
            unexamined(walk, b, reason)
        return nothing(walk, n, reason)
    inner = walk.graph.reading.graphs[body]
    length = length_of(lists[0])
    _asked(walk, n, fm.both(*(fm.equal(length, length_of(other)) for other in lists[1:])), [])
    walk.starts[n] = walk.run.fresh
    fixed: dict[int, Content] = {}
    for t, content in zip(inner.inputs, given, strict=False):
        fixed[t] = _entry(walk, t, content) if isinstance(content, Entries | Listed) else content
    some = fm.at_least(length, 1)
    _within(walk, [] if some is True else [some], lambda: _repeated(walk, n, body, fixed, {}, ()))
    results = _outputs(walk, body)
    for position, output in enumerate(node.outputs):
        if output is None:
            continue
        t = output
        result = results[position] if position < len(results) else Open("it has no value")
        if some is not True and position < len(inner.outputs) and not _states_type(walk, inner.outputs[position]):
            _asked(walk, n, some, [])  # Step/sequence-map-none
        if isinstance(result, Open):
            settle(walk, n, t, result)
            continue
        forms: list[Value] = []
        _add_form(walk, inner.outputs[position], forms, result)
        settle(walk, n, t, Listed(f"seq({result.kind})" if result.kind else "", length, tuple(forms)))
    return None


def _states_type(walk: Derivation, t: int) -> bool:
    """A body declares t as a tensor of an element type."""
    stated = (declared for _, declared in walk.stated.get(t, ()))
    return any(it.WhichOneof("value") == "tensor_type" and it.tensor_type.elem_type for it in stated)


def _entry(walk: Derivation, t: int, content: Entries | Listed) -> Content:
    """Any entry of a sequence."""
    forms: list[Value] = []
    for form in forms_of(content):
        _add_form(walk, t, forms, form)
    only = forms[0] if len(forms) == 1 else None
    if not isinstance(only, Tensor) or only.shape is None:
        return Open("entries of a sequence differ in the number of axes", data=True)
    return Tensor(
        "", only.kind, tuple(free(walk, f"t{t}.size.{k}") if s == VARIES else s for k, s in enumerate(only.shape))
    )


BODIES: Mapping[str, Callable[[Derivation, int], None]] = {"If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _map}
"""For each operator that holds graphs how its bodies are looked at."""
