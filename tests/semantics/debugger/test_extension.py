"""The extension for VS Code: colours of texts, its code on a stand-in for VS Code, its package."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from debugger_models import NESTED, model
from npm_packages import PACKAGES, node, node_modules
from onnx import TensorProto, helper
from sonnx.semantics import load_proto
from sonnx.semantics.debugger.dap.launch import LAUNCH, launch_of, opened_for
from sonnx.semantics.debugger.dap.messages import Arguments
from sonnx.semantics.debugger.display.listing import Listing, listing
from sonnx.semantics.debugger.extension import coloured, inputs_of, keywords, write_extension
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.model.loader import load
from sonnx.spec import cli
from sonnx.spec.language.parse import grammar
from tables import table
from textmate import Token, tokens

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "semantics" / "debugger" / "vscode"
FLOAT = TensorProto.FLOAT
SUPPORT = ROOT / "tests" / "support"
Json = dict[str, Any]


def manifest() -> Json:
    found: Json = json.loads((FOLDER / "package.json").read_text(encoding="ascii"))
    return found


# ---- Colours ------------------------------------------------------------------------------------


def patterns_of(name: str) -> Json:
    content = coloured((FOLDER / f"{name}.tmLanguage.json").read_bytes())
    found: Json = json.loads(content)
    return found


def odd_names() -> Listing:
    """Names with all that the listing has signs for, all kinds of attributes, types and inputs left out."""
    nodes = [
        helper.make_node("Clip", ['a "b" # c', "", "max=1:"], ["call /0:X:"], name="graph (x):"),
        helper.make_node("Odd Op(", ["call /0:X:"], ["return"], domain="my.domain", text="a # b", numbers=[1, -2],
                         real=-1.5e-7, texts=["x", 'y="z"'], tensor=helper.make_tensor("t", FLOAT, [1], [2.0])),
        helper.make_node("Silent", ["return"], [], domain="my.domain", **{"two words": 3}, many=list(range(40))),
        helper.make_node("Identity", ["s"], ["out"]),
    ]  # fmt: skip
    inputs = [
        helper.make_tensor_value_info('a "b" # c', FLOAT, ["batch size", None, 3]),
        helper.make_tensor_value_info("max=1:", FLOAT, []),
        helper.make_tensor_sequence_value_info("s", TensorProto.INT64, ["n"]),
    ]
    stored = [helper.make_tensor("w", TensorProto.FLOAT16, [2, 3], [0.0] * 6)]
    outputs = [helper.make_tensor_sequence_value_info("out", TensorProto.INT64, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my.domain", 1)]
    return listing(load_proto(helper.make_model(graph, opset_imports=opsets, ir_version=10)))


def examples(folder: Path) -> Iterator[Listing]:
    from sonnx.checker.certification.examples import write

    for path in write(folder):
        try:
            yield listing(load(path))
        except (ModelError, Unsupported):
            continue


SCOPES: Mapping[str, str] = {
    "operator": "entity.name.function.operator",
    "input": "variable.other.tensor",
    "output": "variable.other.tensor",
    "name": "variable.other.tensor",
    "attribute": "entity.other.attribute-name",
    "note": "comment.line",
    "graph": "keyword.other.graph",
    "body": "keyword.other.graph",
    "call": "keyword.control",
    "initializer": "keyword.other.declaration",
    "return": "keyword.control",
}
"""The colour at the beginning of each kind of span, and of lines without spans there."""


def scope_at(row: Sequence[Token], column: int) -> str:
    return next((scope for first, end, scope in row if first <= column < end), "")


def check_colours(found: Listing) -> None:
    for line, row in zip(found.lines, tokens(patterns_of("listing"), [it.text for it in found.lines]), strict=True):
        assert "".join(line.text[first:end] for first, end, _ in row) == line.text
        bare = [line.text[first:end] for first, end, scope in row if not scope]
        assert not re.search(r"[^\s(),\[\]:]", "".join(bare)), (line.text, row)
        for span in line.spans:
            wanted = [(span.start - 1, span.end - 1)]
            if span.kind == "attribute":
                wanted = [(span.start - 1, span.start)]
            for first, end in wanted:
                assert {scope_at(row, at).rpartition(".")[0] for at in range(first, end)} == {SCOPES[span.kind]}, line
        kind = "initializer" if line.kind == "input" else line.kind
        if kind in SCOPES:
            assert scope_at(row, len(line.text) - len(line.text.lstrip())).startswith(SCOPES[kind]), (line.text, row)
        if line.kind == "node":
            assert scope_at(row, len(line.text) - 1).startswith("comment.line"), (line.text, row)


def test_each_part_of_a_listing_has_its_colour() -> None:
    check_colours(listing(load_proto(model(NESTED))))
    check_colours(odd_names())


def test_the_listing_of_each_example_is_coloured(tmp_path: Path) -> None:
    found = list(examples(tmp_path))
    assert len(found) > 30
    for it in found:
        check_colours(it)


def test_the_specification_is_coloured_with_the_words_of_its_grammar() -> None:
    kinds = keywords()
    words = frozenset[str]().union(*kinds.values())
    stated = {it.pattern.value for it in grammar().terminals if it.pattern.type == "str"}
    assert {it for it in stated if it.isalpha()} <= words
    assert not re.search("@[a-z]+@", json.dumps(patterns_of("specification")))
    text = (ROOT / "spec" / "5-operators" / "activation.sonnx").read_text(encoding="utf-8").splitlines()
    seen = dict[str, set[str]]()
    for line, row in zip(text, tokens(patterns_of("specification"), text), strict=True):
        bare = "".join(line[first:end] for first, end, scope in row if not scope)
        assert not re.search(r"[^\s()\[\]{},:;]", bare), line
        for first, end, scope in row:
            seen.setdefault(scope, set()).add(line[first:end])
    assert "operator" in seen["keyword.declaration.sonnx"] and "require" in seen["keyword.other.sonnx"]
    assert {"if", "then", "else"} <= seen["keyword.control.sonnx"] and "Relu" in seen["entity.name.function.sonnx"]
    assert not (kinds["expressions"] | kinds["constants"]) & seen["variable.other.sonnx"]


@pytest.mark.campaign
def test_the_library_of_vs_code_finds_the_same_colours(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    modules = node_modules(tmp_path_factory)
    cases: list[tuple[str, str]] = [("listing", it.text) for it in (odd_names(), listing(load_proto(model(NESTED))))]
    cases += [("listing", it.text) for it in examples(tmp_path / "examples")]
    cases += [("specification", it.read_text(encoding="utf-8")) for it in sorted((ROOT / "spec").rglob("*.sonnx"))]
    write_extension(tmp_path / "extension")
    asked = [(str(tmp_path / "extension" / f"{name}.tmLanguage.json"), text) for name, text in cases]
    (tmp_path / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    command = [node(), str(SUPPORT / "textmate.js"), str(modules), str(tmp_path / "asked.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    for (name, text), theirs in zip(cases, json.loads(done.stdout), strict=True):
        stated = patterns_of(name)
        lines = text.split("\n")
        for line, ours, row in zip(lines, tokens(stated, lines), theirs, strict=True):
            columns = [""] * len(line)
            for first, end, scope in row:
                for at in range(first, min(end, len(line))):
                    columns[at] = "" if scope == stated["scopeName"] else scope
            assert columns == [scope for first, end, scope in ours for _ in range(first, end)], line
            bare = "".join(char for char, scope in zip(line, columns, strict=True) if not scope)
            assert not re.search(r"[^\s()\[\]{},:;]", bare), line


# ---- Inputs of a model --------------------------------------------------------------------------


def test_the_inputs_of_a_model_are_told_to_the_picker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [
        helper.make_tensor_value_info("x", FLOAT, ["N", 2, "M", "N"]),
        helper.make_tensor_sequence_value_info("s", TensorProto.INT64, ["K"]),
        helper.make_tensor_value_info("w", FLOAT, [1]),
    ]
    stored = [helper.make_tensor("w", FLOAT, [1], [0.0])]
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    made = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", FLOAT, None)], stored)
    path = tmp_path / "m.onnx"
    path.write_bytes(
        helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=10).SerializeToString()
    )
    expected = [
        {"name": "x", "type": "float[N, 2, M, N]", "needed": True, "sizes": ["N", "M"]},
        {"name": "s", "type": "sequence(int64[K])", "needed": True, "sizes": ["K"]},
        {"name": "w", "type": "float[1]", "needed": False, "sizes": []},
    ]
    assert inputs_of(path) == expected
    assert cli.run(["dap", "--inputs", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == expected
    assert cli.run(["dap", "--inputs", str(tmp_path / "none.onnx")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# ---- Code ---------------------------------------------------------------------------------------

INPUTS = [
    {"name": "x", "type": "float[N, 2]", "needed": True, "sizes": ["N"]},
    {"name": "__proto__", "type": "float[2]", "needed": True, "sizes": ["__proto__"]},
    {"name": "w", "type": "float[1]", "needed": False, "sizes": []},
]
DEBUG = ["commands", "sonnx.debugModel"]
DRAW, WHOLE, EACH, FILE = "Draw the inputs at random", "One file with all inputs", "Choose for each input", "A file..."
DRAWN, STORED = "Draw it at random", "The value that the model stores"


def played(folder: Path, *scenes: Json) -> list[Json]:
    """What the extension does in each scene."""
    command = [node(), str(SUPPORT / "vscode_stub.js"), str(folder), json.dumps(scenes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: list[Json] = json.loads(done.stdout)
    return found


def teller(folder: Path, inputs: object) -> Json:
    """Settings with a command that tells of these inputs."""
    script = folder / "sonnx"
    script.write_text(
        f"#!/bin/sh\n[ $# = 3 ] && [ $1 = dap ] && [ $2 = --inputs ] || exit 9\ncat {folder}/inputs.json\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    (folder / "inputs.json").write_text(json.dumps(inputs))
    return {"sonnx.path": str(script)}


def test_what_is_contributed_is_registered_and_the_other_way_round() -> None:
    (found,) = played(FOLDER, {})
    contributes = manifest()["contributes"]
    assert sorted(found["registered"]["commands"]) == sorted(it["command"] for it in contributes["commands"])
    languages = {it["id"] for it in contributes["languages"]}
    for kind in ("inline", "hover"):
        assert {it["language"] for it in found["registered"][kind]} <= languages
    types = [it["type"] for it in contributes["debuggers"]]
    assert found["registered"]["factory"] == found["registered"]["provider"] == types
    assert found["subscriptions"] == sum(map(len, found["registered"].values()))


PICKS: Mapping[str, tuple[list[str | None], Json | None]] = {
    "drawn": ([DRAW, "7", "3", "1"], {"random": 7, "sizes": {"N": 3, "__proto__": 1}}),
    "one file": ([WHOLE, "/a b/all.npz"], {"inputs": "/a b/all.npz"}),
    "each": (
        [EACH, FILE, "/x.npy", DRAWN, STORED, "0", "4"],
        {"inputs": {"x": "/x.npy"}, "random": 0, "sizes": {"__proto__": 4}},
    ),
    "files alone": ([EACH, FILE, "/x.npy", FILE, "/p.pb", FILE, "/w.json"],
                    {"inputs": {"x": "/x.npy", "__proto__": "/p.pb", "w": "/w.json"}}),
    "turned away at once": ([None], None),
    "turned away from the seed": ([DRAW, None], None),
    "turned away from a size": ([DRAW, "0", "2", None], None),
    "turned away from a file": ([WHOLE, None], None),
    "turned away from an input": ([EACH, FILE, "/x.npy", None], None),
    "turned away from its file": ([EACH, FILE, None], None),
}  # fmt: skip


def test_the_picker_makes_a_launch_of_what_is_answered(tmp_path: Path) -> None:
    settings = teller(tmp_path, INPUTS)
    uri = {"fsPath": "/models/net.onnx"}
    scenes = [{"call": DEBUG, "arguments": [uri], "answers": row, "settings": settings} for row, _ in PICKS.values()]
    for (name, (answers, given)), found in zip(PICKS.items(), played(FOLDER, *scenes), strict=True):
        assert (len(found["asked"]), found["said"]) == (len(answers), []), name
        if given is None:
            assert found["started"] == [], name
            continue
        (started,) = found["started"]
        own = {"type": "sonnx", "request": "launch", "name": "SONNX: net.onnx", "model": "/models/net.onnx"}
        assert started == {"folder": "/models", "configuration": {**own, **given, "stopOnEntry": True}}, name
        assert launch_of(LAUNCH, Arguments(started["configuration"])).model == Path("/models/net.onnx")


def test_the_model_is_the_one_that_is_shown_or_picked(tmp_path: Path) -> None:
    settings = teller(tmp_path, [])
    shown = ["/m/a.onnx", "/m/a.onnx.sonnx.lst"]
    scenes: list[Json] = [{"call": DEBUG, "settings": settings, "shown": it} for it in shown]
    scenes += [{"call": DEBUG, "settings": settings, "models": ["/m/b.onnx", "/m/a.onnx"], "answers": ["a.onnx"]}]
    scenes += [{"call": DEBUG, "settings": settings, "shown": "/m/readme.md", "answers": ["/m/a.onnx"]}]
    for found in played(FOLDER, *scenes):
        assert [it["configuration"]["model"] for it in found["started"]] == ["/m/a.onnx"], found
    resolve = ["provider", "sonnx", "resolveDebugConfiguration"]
    own = {"type": "sonnx", "request": "launch", "name": "x"}
    scenes = [{"call": resolve, "arguments": [None, it], "settings": settings, "shown": shown[1]} for it in (own, {})]
    stated, none = played(FOLDER, *scenes)
    assert stated["gave"] == {**own, "model": "${command:pickModel}"} and stated["asked"] == []
    assert none["gave"] == {**own, "name": "SONNX: a.onnx", "model": "/m/a.onnx", "stopOnEntry": True}
    assert manifest()["contributes"]["debuggers"][0]["variables"] == {"pickModel": "sonnx.pickModel"}


def test_what_goes_wrong_is_said_in_one_line_and_starts_nothing(tmp_path: Path) -> None:
    failing = tmp_path / "failing"
    failing.write_text("#!/bin/sh\necho warning >&2\necho 'error: no model' >&2\nexit 2\n")
    failing.chmod(0o755)
    paths = {
        str(failing): "error: no model",
        str(tmp_path / "gone"): "is not there: set",
        "no-such-command": "is not there",
    }
    call: Json = {"call": DEBUG, "arguments": [{"fsPath": "/m/a.onnx"}]}
    scenes = [{**call, "settings": {"sonnx.path": it}} for it in paths]
    for why, found in zip(paths.values(), played(FOLDER, *scenes), strict=True):
        assert found["started"] == [] and len(found["said"]) == 1 and why in found["said"][0]
    factory = {"call": ["factory", "sonnx", "createDebugAdapterDescriptor"]}
    gone, stated = played(
        FOLDER, *({**factory, "settings": {"sonnx.path": it}} for it in (str(tmp_path / "gone"), str(failing)))
    )
    assert "sonnx dap --vscode" in gone["gave"]["thrown"]
    assert stated["gave"] == {"given": [str(failing), ["dap"]]}


def test_without_a_setting_the_python_that_wrote_the_extension_serves(tmp_path: Path) -> None:
    write_extension(tmp_path)
    (found,) = played(tmp_path, {"call": ["factory", "sonnx", "createDebugAdapterDescriptor"]})
    file, arguments = found["gave"]["given"]
    assert file == sys.executable and arguments[-1] == "dap"


def test_what_the_picker_makes_of_a_model_is_a_launch_that_begins(tmp_path: Path) -> None:
    """The whole way: the manifest's command tells of the inputs, the launch that is made opens the model."""
    write_extension(tmp_path / "extension")
    onnx.save(model(NESTED), tmp_path / "net = 1.onnx")
    call = {"call": DEBUG, "arguments": [{"fsPath": str(tmp_path / "net = 1.onnx")}], "answers": [DRAW, "5"]}
    (found,) = played(tmp_path / "extension", call)
    (started,) = found["started"]
    launch = launch_of(LAUNCH, Arguments(started["configuration"]))
    assert (found["said"], launch.random, launch.stop_on_entry) == ([], 5, True)
    assert opened_for(launch, lambda: False).session.history.at(0).next is not None


VALUES = [
    {"name": "y", "expression": '`/"y"`', "line": 4, "column": 3, "endColumn": 6, "value": "float[2] [1.0, 2.0]"},
    {"name": "x", "expression": '`/"x"`', "line": 4, "column": 14, "endColumn": 17},
]


def test_values_stand_in_the_text_and_a_name_below_the_mouse_asks_for_its_tensor() -> None:
    inline = ["inline", {"language": "sonnx-listing"}, "provideInlineValues"]
    hover = ["hover", {"language": "sonnx-listing"}, "provideEvaluatableExpression"]
    shown = {"start": {"line": 0}, "end": {"line": 9}}
    session: Json = {"session": "sonnx", "values": VALUES}
    at = [{"line": 3, "character": it} for it in (4, 15, 9)]
    scenes: list[Json] = [{"call": inline, "arguments": [{}, shown, {}], **session}]
    scenes += [{"call": hover, "arguments": [{}, it], **session} for it in at]
    scenes += [{"call": inline, "arguments": [{}, shown, {}], "session": it} for it in ("sonnx", "python", None)]
    values, first, second, between, *none = played(FOLDER, *scenes)
    (text,) = values["gave"]
    assert text["given"][1] == "y = float[2] [1.0, 2.0]"
    assert text["given"][0] == {"start": {"line": 3, "character": 2}, "end": {"line": 3, "character": 5}}
    assert values["asked"] == [{"command": "sonnx/values", "line": 1, "endLine": 10}]
    assert [it["gave"]["given"][1] for it in (first, second)] == ['`/"y"`', '`/"x"`'] and "gave" not in between
    assert [it["gave"] for it in none] == [[], [], []]


# ---- The package --------------------------------------------------------------------------------


@table("key", ["main", "languages", "grammars"])
def test_the_files_that_the_manifest_names_are_there(key: str) -> None:
    found = manifest()
    rows = found["contributes"].get(key, [])
    named = (
        [found["main"]] if key == "main" else [row[it] for row in rows for it in ("configuration", "path") if it in row]
    )
    assert named and all((FOLDER / it).is_file() for it in named)
    if key == "grammars":
        languages = {it["id"] for it in found["contributes"]["languages"]}
        assert {it["language"] for it in rows} == languages
        for row in rows:
            assert json.loads((FOLDER / row["path"]).read_text(encoding="ascii"))["scopeName"] == row["scopeName"]


def test_the_code_registers_each_command_and_no_other() -> None:
    code = (FOLDER / "extension.js").read_text(encoding="ascii")
    registered = re.findall(r'registerCommand\("([\w.]+)"', code)
    assert sorted(registered) == sorted(it["command"] for it in manifest()["contributes"]["commands"])
    settings = manifest()["contributes"]["configuration"]["properties"]
    assert {f"sonnx.{it}" for it in re.findall(r'getConfiguration\("sonnx"\)\.get\("(\w+)"', code)} == set(settings)


def test_menus_name_commands_and_the_extension_wakes_for_its_debugger() -> None:
    found = manifest()
    commands = {it["command"] for it in found["contributes"]["commands"]}
    rows = [row for menu in found["contributes"]["menus"].values() for row in menu]
    assert rows and {it["command"] for it in rows} <= commands
    (debugger,) = found["contributes"]["debuggers"]
    assert found["activationEvents"] == [f"onDebugResolve:{debugger['type']}"]
    least = re.fullmatch(r"\^1\.(\d+)\.0", found["engines"]["vscode"])
    assert least is not None and int(least[1]) >= 74  # from which on commands and languages wake an extension unstated


@pytest.mark.campaign
def test_the_code_fits_the_oldest_vs_code_that_takes_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    modules = node_modules(tmp_path_factory)
    oldest = manifest()["engines"]["vscode"].removeprefix("^")
    assert f"@types/vscode@{oldest}" in PACKAGES
    roots = ["--typeRoots", str(modules / "@types"), "--types", "node,vscode"]
    flags = ["--noEmit", "--allowJs", "--checkJs", "--target", "es2022", "--module", "commonjs"]
    command = [node(), str(modules / "typescript" / "bin" / "tsc"), *flags, *roots]
    done = subprocess.run([*command, str(FOLDER / "extension.js")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.campaign
def test_the_packaging_tool_of_vs_code_takes_the_extension(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    modules = node_modules(tmp_path_factory)
    extension = tmp_path / "extension"
    written = {it.name for it in write_extension(extension)}
    tool = [node(), str(modules / "@vscode" / "vsce" / "vsce")]
    flags = ["--allow-missing-repository", "--skip-license", "--no-dependencies"]
    made = tmp_path / "sonnx.vsix"
    listed = subprocess.run(
        [*tool, "ls", "--no-dependencies"], cwd=extension, capture_output=True, text=True, check=False
    )
    assert listed.returncode == 0, listed.stderr
    assert set(listed.stdout.split()) == written
    command = [*tool, "package", *flags, "--out", str(made)]
    done = subprocess.run(command, cwd=extension, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    held = {name.removeprefix("extension/").lower() for name in zipfile.ZipFile(made).namelist()}
    assert {name.lower() for name in written} <= held
    broken = json.loads((extension / "package.json").read_text())
    del broken["engines"]
    (extension / "package.json").write_text(json.dumps(broken))
    refused = subprocess.run(command, cwd=extension, capture_output=True, text=True, timeout=300, check=False)
    assert refused.returncode and "engines" in refused.stderr
