"""The extension for VS Code: it declares what the adapter takes, and starts the adapter that wrote it out."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
from dap_adapters import spawned
from dap_client import Client, Json
from sonnx.semantics.debugger.dap.launch import schema
from sonnx.semantics.debugger.display.listing import SUFFIX
from sonnx.semantics.debugger.extension import write_extension
from sonnx.spec import cli

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "semantics" / "debugger" / "vscode"
DECLARED = {"launch": schema("launch"), "attach": schema("attach")}


def manifest() -> Json:
    found: Json = json.loads((FOLDER / "package.json").read_text(encoding="ascii"))
    return found


def test_the_launch_arguments_that_are_declared_are_those_that_are_read() -> None:
    found = manifest()
    (debugger,) = found["contributes"]["debuggers"]
    if os.environ.get("SONNX_UPDATE"):
        debugger["configurationAttributes"] = DECLARED
        (FOLDER / "package.json").write_text(json.dumps(found, indent=2) + "\n", encoding="ascii", newline="\n")
    assert debugger["configurationAttributes"] == DECLARED


def test_the_configurations_that_are_offered_fit_what_is_declared() -> None:
    (debugger,) = manifest()["contributes"]["debuggers"]
    offered = [*debugger["initialConfigurations"], *(it["body"] for it in debugger["configurationSnippets"])]
    assert {it["request"] for it in offered} == {"launch", "attach"}
    for configuration in offered:
        assert configuration["type"] == debugger["type"] == "sonnx" and configuration["name"]
        own = {key: value for key, value in configuration.items() if key not in ("type", "request", "name")}
        declared = DECLARED[configuration["request"]]
        jsonschema.validate(own, {**declared, "type": "object", "additionalProperties": False})


def test_the_documentation_for_editors_names_each_option() -> None:
    text = (FOLDER.parent / "EDITORS.md").read_text(encoding="ascii")
    table = text[text.index("## The configuration") : text.index("## VS Code")]
    for request, declared in DECLARED.items():
        for name in declared["properties"]:
            (row,) = [line for line in table.splitlines() if f"`{name}`" in line.partition(" | ")[0]]
            assert re.search(rf"\b(both|{request})\b", row.split(" | ")[1]), row
    named = set(re.findall(r"`(\w+)`", " ".join(line.partition(" | ")[0] for line in table.splitlines())))
    assert named == {name for declared in DECLARED.values() for name in declared["properties"]}
    for block in re.findall(r"```json\n(.*?)```", text, re.S):
        (configuration,) = json.loads(block)["configurations"]
        assert set(configuration) <= {"type", "request", "name", *DECLARED[configuration["request"]]["properties"]}


def test_breakpoints_may_stand_in_listings() -> None:
    contributes = manifest()["contributes"]
    language = next(it for it in contributes["languages"] if it["extensions"] == [SUFFIX])
    assert contributes["breakpoints"] == [{"language": language["id"]}]
    assert contributes["debuggers"][0]["languages"] == [language["id"]]


def test_nothing_is_built_or_fetched_and_the_version_is_the_package_s() -> None:
    found = manifest()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (found["version"], found["license"]) == (project["version"], project["license"])
    assert not {"browser", "scripts", "dependencies", "devDependencies"} & set(found)
    assert {path.suffix for path in FOLDER.iterdir()} == {".json", ".md", ".js"}


def test_what_is_written_out_starts_this_adapter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["dap", "--vscode", str(tmp_path / "new" / "folder")]) == 0
    assert str(tmp_path / "new" / "folder") in capsys.readouterr().out
    written = tmp_path / "new" / "folder"
    assert {path.name for path in written.iterdir()} == {path.name for path in FOLDER.iterdir()}
    found = json.loads((written / "package.json").read_text(encoding="ascii"))
    (debugger,) = found["contributes"]["debuggers"]
    with spawned(command=(debugger["runtime"], *debugger["args"])) as client:
        assert client.request("initialize", {"adapterID": "sonnx"})["supportsStepBack"]
    debugger["runtime"], debugger["args"] = "sonnx", ["dap"]
    assert found == manifest()


def test_an_extension_is_written_over_and_nothing_else_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_extension(tmp_path)
    (tmp_path / "README.md").write_text("old")
    write_extension(tmp_path)
    assert (tmp_path / "README.md").read_bytes() == (FOLDER / "README.md").read_bytes()
    for other in ('{"name": "other"}', "[]", "{"):
        (tmp_path / "package.json").write_text(other)
        assert cli.run(["dap", "--vscode", str(tmp_path)]) == 2
        assert "name another folder" in capsys.readouterr().err
        assert (tmp_path / "package.json").read_text() == other


def test_the_adapter_takes_what_an_editor_adds_to_a_configuration(client: Client, nested: Json) -> None:
    """VS Code sends the whole configuration, with keys of its own."""
    added = {"type": "sonnx", "request": "launch", "name": "x", "__sessionId": "1", "presentation": {"hidden": False}}
    added |= {"internalConsoleOptions": "openOnSessionStart", "preLaunchTask": "x", "serverReadyAction": {}}
    client.begin({**nested, **added})
    client.end()
