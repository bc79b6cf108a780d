"""The specification as a library: all files, sound, by name, and quick to start."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from itertools import chain
from typing import Any

import pytest
from sonnx.spec import library, parsed
from sonnx.spec.language.errors import SpecError
from sonnx.spec.language.syntax import Constraint, FunctionDeclaration, Operator, Profile, SortDeclaration, Transition
from texts import few

START = """
import json, sys, time
start = time.process_time()
from sonnx.spec.library import specification
found = specification()
took = time.process_time() - start
operators = sys.argv[1:] and sorted(found.operators)
print(json.dumps({"took": took, "rules": len(found.profiles["sonnx-2025-05"].rules), "operators": operators,
    "modules": [m for m in ("lark", "onnx", "numpy", "sonnx.spec.elaborate.declarations") if m in sys.modules]}))
"""


def start(*arguments: str) -> dict[str, object]:
    done = subprocess.run([sys.executable, "-c", START, *arguments], capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_the_files_come_in_document_order() -> None:
    names = parsed.file_names()
    parts = ["1-syntax.sonnx", "2-wellformed.sonnx", "3-execution.sonnx", "primitives.sonnx"]
    assert [name for name in names if name in parts] == parts
    rest = [name.partition("/")[0] for name in names if "/" in name]
    folders = ("profiles", "5-operators", "6-properties", "7-transforms")
    assert rest == [folder for folder in folders for _ in range(rest.count(folder))]
    assert names.index("primitives.sonnx") < names.index("profiles/sonnx-2025-05.sonnx")


def test_every_specification_file_is_read() -> None:
    there = {path.relative_to(parsed.ROOT).as_posix() for path in parsed.ROOT.rglob("*.sonnx")}
    assert set(parsed.file_names()) == there


def test_the_specification_is_sound_and_complete() -> None:
    found = library.build(parsed.read_texts())
    declarations = [d for file in found.files.values() for d in file.declarations]
    for kind, mapping in [
        (SortDeclaration, found.sorts),
        (FunctionDeclaration, found.functions),
        (Constraint, found.constraints),
        (Transition, found.transitions),
        (Profile, found.profiles),
    ]:
        assert list(mapping.values()) == [d for d in declarations if isinstance(d, kind)]
    operators = [o for versions in found.operators.values() for o in versions]
    assert len(operators) == sum(isinstance(d, Operator) for d in declarations)
    assert {"Relu", "MatMul", "Conv"} <= found.operators.keys()


def test_operators_come_oldest_version_first() -> None:
    for versions in library.build(parsed.read_texts()).operators.values():
        assert [o.first for o in versions] == sorted(o.first for o in versions)


def test_digests_are_those_of_the_files() -> None:
    found = library.build(parsed.read_texts())
    assert list(found.digests) == list(found.files) == list(parsed.file_names())
    for name, digest in found.digests.items():
        assert digest == hashlib.sha256((parsed.ROOT / name).read_bytes()).hexdigest()


def test_a_start_imports_no_parser_and_no_onnx() -> None:
    first = start()
    assert first["modules"] == []
    assert any(float(str(it["took"])) < 0.2 for it in chain([first], (start() for _ in range(3))))


def test_a_declaration_is_decoded_when_its_name_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed.ahead.cache_clear()
    read: list[str] = []
    real = parsed.decode

    def spy(data: list[Any], *known: Any) -> object:
        made = real(data, *known)
        read.extend([made.name] if isinstance(made, Operator | FunctionDeclaration) else [])
        return made

    monkeypatch.setattr(parsed, "decode", spy)
    found = library.build(parsed.read_texts())
    assert {"Relu", "Conv"} <= set(found.operators)
    assert "window_extent" in found.functions
    assert read == []
    assert found.operators["Relu"][-1].name == "Relu"
    assert read == ["Relu"] * len(found.operators["Relu"])


def test_text_with_a_mistake_is_refused_each_time() -> None:
    texts = {**few(), "3-execution.sonnx": 'define f(t: Tensor): Bool "f." = t in nowhere(t)'}
    for _ in range(2):
        with pytest.raises(SpecError, match=r"3-execution\.sonnx:1:\d+: name error"):
            library.build(texts)


def test_a_changed_text_is_elaborated_again() -> None:
    texts = few()
    library.build(texts)
    with pytest.raises(SpecError):
        library.build({**texts, "1-syntax.sonnx": texts["1-syntax.sonnx"] + '\nfact broken(x: Nowhere): Bool "x."\n'})


def test_a_specification_that_was_not_parsed_ahead_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of some texts; test_parsed.py has the files of all."""
    ahead = library.build(few())
    monkeypatch.setattr("sonnx.spec.parsed.ahead", lambda: parsed.Ahead({}))
    monkeypatch.setattr("sonnx.spec.library.ahead", lambda: parsed.Ahead({}))
    assert dict(library.build(few()).files) == dict(ahead.files)
