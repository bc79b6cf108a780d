"""What was parsed ahead: the encoding is exact, it is what the texts say, and nothing else can take its place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sonnx.checker.certification import examples
from sonnx.spec import parsed
from sonnx.spec.elaborate.declarations import elaborate
from sonnx.spec.elaborate.formulas import Cores
from sonnx.spec.language import syntax
from sonnx.spec.language.errors import SpecError
from sonnx.spec.language.parse import parse
from sonnx.spec.library import specification

TEXT = 'fact f(x: Int): Int "f."\ndefine g(x: Int): Int "g." = if f(x) < 0 then -1 else f(f(x)) + 12\n'


def values(hint: object) -> st.SearchStrategy[object]:
    """Values of an annotation of the syntax; expressions and sorts stay shallow."""
    if get_origin(hint) is tuple:
        items = get_args(hint)
        if items[-1] is Ellipsis:
            return st.lists(values(items[0]), max_size=2).map(tuple)
        return st.tuples(*map(values, items))
    if get_args(hint):
        return st.one_of(*map(values, get_args(hint)))
    if hint is syntax.Expr:
        return st.deferred(lambda: EXPRESSIONS)
    if hint is syntax.Sort:
        return st.deferred(lambda: SORTS)
    if hint is syntax.Statement:
        return st.deferred(lambda: STATEMENTS)
    if hint in parsed.CLASSES:
        return objects(hint)
    return {str: st.text(max_size=5), int: st.integers(), bool: st.booleans(), type(None): st.none()}[hint]


def objects(cls: type) -> st.SearchStrategy[object]:
    return st.builds(cls, *(values(hint) for hint in get_type_hints(cls).values()))


@cache
def read(name: str) -> syntax.File:
    """A text of the package, parsed."""
    return parse(parsed.read_texts()[name], name)


def test_the_cores_that_lie_in_the_package_are_those_of_its_texts() -> None:
    text = specification()
    made = elaborate([read(name) for name in parsed.file_names()])
    assert [str(error) for error in made.errors] == []
    anew = {parsed.key_of(core): core for core in made.cores}
    stored = {parsed.key_of(core): core for core in text.meanings}
    assert set(parsed.ahead().keys) >= stored.keys() == anew.keys(), "run python -m sonnx.spec.parsed"
    assert [key for key in anew if parsed.encode(anew[key]) != parsed.encode(stored[key])] == []
    cores = Cores(made.functions)
    defined = [name for name, function in text.functions.items() if function.body is not None]
    other = [n for n in defined if parsed.encode(cores.definition(n)) != parsed.encode(text.cores.definition(n))]
    formulas = {it.name: it for it in text.constraints.values() if it.phase == "static"}
    other += [
        name
        for name, it in formulas.items()
        if parsed.encode(cores.formula(made.constraints[name].formula)) != parsed.encode(text.cores.constraint(it))
    ]
    assert other == []


def test_a_changed_formula_with_the_name_of_a_constraint_has_a_core_of_its_own() -> None:
    text = specification()
    constraint = next(it for it in text.constraints.values() if it.phase == "static")
    changed = replace(constraint, formula=syntax.Expr("not", (constraint.formula,), constraint.formula.span))
    assert text.cores.constraint(constraint).body.head != "not"
    assert text.cores.constraint(changed).body.head == "not"


SPANS = st.builds(syntax.Span, st.text(max_size=5), *[st.integers(0, 999)] * 4)
SORTS = st.recursive(
    st.builds(syntax.Sort, st.text(max_size=5)),
    lambda inner: st.builds(syntax.Sort, st.text(max_size=5), inner),
    max_leaves=3,
)
EXPRESSIONS = st.recursive(
    st.builds(syntax.Expr, st.sampled_from(sorted(syntax.HEADS)), st.just(()), SPANS),
    lambda inner: st.builds(
        syntax.Expr,
        st.sampled_from(sorted(syntax.HEADS)),
        st.lists(
            st.one_of(
                inner,
                st.text(max_size=5),
                st.integers(),
                st.none(),
                st.builds(syntax.Binder, st.text(max_size=5), inner, SPANS),
                st.builds(syntax.Range, st.lists(st.text(max_size=3)).map(tuple), st.booleans(), inner, SPANS),
                st.builds(syntax.Arm, st.lists(st.text(max_size=3)).map(tuple), inner, SPANS),
                st.builds(syntax.Keyword, st.text(max_size=5), inner, SPANS),
            ),
            max_size=3,
        ).map(tuple),
        SPANS,
    ),
    max_leaves=5,
)


STATEMENTS = st.recursive(
    st.builds(syntax.Statement, st.text(max_size=5), st.just(()), st.just(()), EXPRESSIONS),
    lambda inner: st.builds(
        syntax.Statement,
        *(values(hint) for name, hint in get_type_hints(syntax.Statement).items() if name not in ("body", "span")),
        st.lists(inner, max_size=2).map(tuple),
        SPANS,
    ),
    max_leaves=3,
)


def exact(value: object) -> str:
    """Equality of declarations ignores spans; their representation does not."""
    return repr(value)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of([values(cls) for cls in parsed.CLASSES if cls.__module__ == syntax.__name__]))
def test_every_value_of_the_syntax_survives_with_its_spans(value: object) -> None:
    assert exact(parsed.decode(json.loads(json.dumps(parsed.encode(value))))) == exact(value)


def test_the_package_was_built_with_these_texts_and_modules() -> None:
    digests = {name: parsed.sha256(text) for name, text in parsed.read_texts().items()}
    found = {name: digest for name, (digest, _) in parsed.ahead().units.items()}
    assert found == digests, "the installed package is another one, or run: python -m sonnx.spec.parsed"


@pytest.mark.parametrize("name", parsed.file_names())
def test_what_was_parsed_ahead_is_what_the_text_says(name: str) -> None:
    _, unit = parsed.ahead().units[name]
    assert exact(unit.source()) == exact(read(name))


def test_another_text_is_parsed() -> None:
    name = "3-execution.sonnx"
    text = parsed.read_texts()[name]
    assert parsed.unit(text, name) is parsed.ahead().units[name][1]
    assert len(parsed.unit(text + "\n" + TEXT, name).entries) == len(parsed.ahead().units[name][1].entries) + 2
    assert len(parsed.unit(TEXT, "unheard-of.sonnx").entries) == 2


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package folder of its own for what was parsed ahead."""
    monkeypatch.setattr(parsed, "ROOT", tmp_path)
    monkeypatch.setattr(parsed, "modules_digest", lambda: "these modules")
    parsed.ahead.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    parsed.ahead.cache_clear()


def test_what_other_modules_parsed_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed.write({"x.sonnx": TEXT}, folder)
    assert list(parsed.ahead().units) == ["x.sonnx"]
    parsed.ahead.cache_clear()
    monkeypatch.setattr(parsed, "modules_digest", lambda: "others")
    assert (parsed.ahead().units, list(parsed.ahead().keys)) == ({}, [])


@pytest.mark.parametrize("content", [b"", b"no JSON\n", b"\xff\xfe\n", b'["these modules"]\n', b"{}"])
def test_a_file_that_is_no_such_file_is_not_used(folder: Path, content: bytes) -> None:
    (folder / parsed.NAME).write_bytes(content)
    assert (parsed.ahead().units, list(parsed.ahead().keys)) == ({}, [])
    assert len(parsed.unit(TEXT, "x.sonnx").entries) == 2


def test_a_text_with_a_mistake_is_not_parsed_ahead(folder: Path) -> None:
    with pytest.raises(SpecError):
        parsed.write({"x.sonnx": 'define f(x: Int): Int "f." = g(x)'}, folder)
    assert not (folder / parsed.NAME).exists()


OPENED = """
import os, sys
opened = set()
def hear(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        opened.add(os.path.abspath(os.fsdecode(arguments[0])))
sys.addaudithook(hear)
from sonnx.checker import certify, recheck
from sonnx.spec import parsed
report = certify(sys.argv[1], rules=["all"])
own = {sys.prefix, sys.base_prefix, str(parsed.ROOT.parent), "/proc", "/sys", "/dev", "/usr", "/etc", "/lib"}
own |= {path for path in sys.path if path} | {os.path.abspath(path) for path in sys.path if path}
print(report.verdict, sorted(path for path in opened if not any(path.startswith(place) for place in own)))
"""


def test_nothing_outside_the_package_is_read(tmp_path: Path) -> None:
    """Neither a cache in the user's folders nor anything that the environment names can change a verdict."""
    examples.write(tmp_path / "examples")
    model = tmp_path / "examples" / "conforming.onnx"
    home = tmp_path / "home"
    places = {name: str(home) for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "SONNX_CACHE", "TMPDIR")}
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", OPENED, str(model)],
        env={**os.environ, **places},
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"CONFORMS ['{model}']\n"
    assert list(home.iterdir()) == []
