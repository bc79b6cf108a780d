"""The cache of parsed text: the encoding is exact, and no entry, however wrong, changes what is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sonnx.spec import cache, library, syntax
from sonnx.spec.parse import parse

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
    if hint in cache.CLASSES:
        return objects(hint)
    return {str: st.text(max_size=5), int: st.integers(), bool: st.booleans(), type(None): st.none()}[hint]


def objects(cls: type) -> st.SearchStrategy[object]:
    return st.builds(cls, *(values(hint) for hint in get_type_hints(cls).values()))


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


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SONNX_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def through_json(value: object) -> object:
    return cache.decode(json.loads(json.dumps(cache.encode(value))))


@given(st.one_of([values(cls) for cls in cache.CLASSES]))
def test_every_value_of_the_syntax_survives_with_its_spans(value: object) -> None:
    assert exact(through_json(value)) == exact(value)


@pytest.mark.parametrize("name", library.file_names())
def test_every_specification_file_survives_with_its_spans(name: str) -> None:
    file = parse(library.read_texts()[name], name)
    assert exact(through_json(file)) == exact(file)


@pytest.mark.parametrize(
    "data",
    [
        1.5,
        {},
        [],
        ["no tag"],
        [True],
        [-1],
        [99],
        [1],
        [1, "f", 1, 2, 3],
        [1, "f", 1, 2, 3, "4"],
        [1, "f", 1, 2, 3, True],
        [2, "Int", "Int", [1, "", 0, 0, 0, 0]],
        [3, "no head", [0], [1, "", 0, 0, 0, 0]],
        [3, "var", [0, 1.5], [1, "", 0, 0, 0, 0]],
        [3, "var", [0, [0]], [1, "", 0, 0, 0, 0]],
        [3, "var", "x", [1, "", 0, 0, 0, 0]],
        [16, "X", "", "T", [0, [0, "d", 1]], [1, "", 0, 0, 0, 0]],
        [16, "X", "", "T", [0, [0, "d"]], [1, "", 0, 0, 0, 0]],
        [19, "file", [0, [1, "", 0, 0, 0, 0]]],
    ],
    ids=json.dumps,
)
def test_data_that_is_no_encoding_is_refused(data: object) -> None:
    with pytest.raises(cache.Malformed):
        cache.decode(data)


def test_a_second_reading_comes_from_the_cache(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = library.parse_file(TEXT, "x.sonnx")
    monkeypatch.setattr("sonnx.spec.parse.parse", lambda *_: pytest.fail("parsed again"))
    assert exact(library.parse_file(TEXT, "x.sonnx")) == exact(first)


def test_another_text_or_name_is_another_entry(own_cache: Path) -> None:
    library.parse_file(TEXT, "x.sonnx")
    assert len(library.parse_file(TEXT + 'sort S "s."', "x.sonnx").declarations) == 3
    assert library.parse_file(TEXT, "y.sonnx").declarations[0].span.file == "y.sonnx"


def damages(entry: Path) -> dict[str, bytes]:
    header, payload = entry.read_bytes().split(b"\n")
    other = payload.replace(b"12", b"13")
    return {
        "empty": b"",
        "truncated": entry.read_bytes()[:-9],
        "no JSON": b"\x80\x04junk",
        "a changed number": header + b"\n" + other,
        "another key": header.replace(b"[", b'["0", ', 1) + b"\n" + payload,
        "too deep": header + b"\n" + b"[" * 100_000,
        "not UTF-8": header + b"\n\xff\xfe",
    }


@pytest.mark.parametrize(
    "damage", ["empty", "truncated", "no JSON", "a changed number", "another key", "too deep", "not UTF-8"]
)
def test_a_damaged_entry_is_parsed_anew(own_cache: Path, damage: str) -> None:
    good = library.parse_file(TEXT, "x.sonnx")
    (entry,) = own_cache.glob("*.json")
    entry.write_bytes(damages(entry)[damage])
    assert exact(library.parse_file(TEXT, "x.sonnx")) == exact(good)


def test_an_entry_of_another_kind_or_file_is_parsed_anew(own_cache: Path) -> None:
    good = library.parse_file(TEXT, "x.sonnx")
    for foreign in (good.declarations, library.parse_file(TEXT, "y.sonnx")):
        cache.store(cache.key_of("x.sonnx", TEXT), foreign)
        assert exact(library.parse_file(TEXT, "x.sonnx")) == exact(good)


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_folder_that_others_can_write_is_not_read(own_cache: Path) -> None:
    library.parse_file(TEXT, "x.sonnx")
    key = cache.key_of("x.sonnx", TEXT)
    assert cache.load(key) is not None
    own_cache.chmod(0o777)
    assert cache.load(key) is None


@pytest.mark.parametrize("place", ["a file", "below a file", "/proc/nowhere"])
def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    chosen = {"a file": file, "below a file": file / "x"}.get(place, Path(place))
    monkeypatch.setattr(cache, "folder", lambda: chosen)
    assert len(library.parse_file(TEXT, "x.sonnx").declarations) == 2
    assert file.read_text() == ""


def test_a_cache_without_a_home_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "folder", lambda: None)
    assert len(library.parse_file(TEXT, "x.sonnx").declarations) == 2


def test_nothing_but_whole_entries_is_left_behind(own_cache: Path) -> None:
    library.parse_file(TEXT, "x.sonnx")
    assert [path.suffix for path in own_cache.iterdir()] == [".json"]


def test_the_users_choice_of_folder_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SONNX_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "sonnx"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder() == tmp_path / ".cache" / "sonnx"
    monkeypatch.setenv("SONNX_CACHE", "here")
    assert cache.folder() == Path("here")
