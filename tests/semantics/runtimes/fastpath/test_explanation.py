"""Who runs what, who would have and why not; and `sonnx partition` as a user meets it."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner, Result
from random_providers import RandomExecutionProvider
from sonnx.semantics.commands.partition import partition
from sonnx.semantics.model.loader import load
from sonnx.semantics.runtimes.fastpath import providers
from sonnx.semantics.runtimes.fastpath.explanation import SESSION, explained
from sonnx.semantics.runtimes.fastpath.provider import ComputeCapability, GraphViewer, IndexedSubGraph
from toy_providers import MAIN, Toy, layers, pairs, together

TOY = "ToyExecutionProvider"


def grows(viewer: GraphViewer) -> list[ComputeCapability]:
    wanted = tuple(n for n in viewer.nodes if viewer.node(n).op_type == "MatMul")
    return [ComputeCapability(IndexedSubGraph(wanted), "products", grows=True)]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "layers.onnx"
    onnx.save(layers(), path)
    return path


def invoked(monkeypatch: pytest.MonkeyPatch, toy: object, *arguments: object) -> Result:
    point = EntryPoint(TOY, "toy:made", providers.GROUP)
    monkeypatch.setattr(providers, "entry_points", lambda group: [point] if group == providers.GROUP else [])
    monkeypatch.setattr(EntryPoint, "load", lambda self: lambda: toy)
    return CliRunner().invoke(partition, list(map(str, arguments)))


def test_each_node_says_who_else_would_have_run_it_and_why_not(model: Path) -> None:
    first = Toy(pairs, name="FirstExecutionProvider")
    found = explained(load(model), [first, Toy(grows)])
    paths = {it.path: n for n, it in enumerate(found.model.nodes)}
    said = {path: [(it.provider, it.why) for it in found.others[n]] for path, n in paths.items()}
    preferred = "it would run the node (products), and FirstExecutionProvider is preferred"
    assert said["/0:MatMul"][0] == (TOY, preferred)
    assert said["/2:MatMul"][0] == ("FirstExecutionProvider", "it does not offer to run the node")
    assert said["/3:Neg"] == [(it, "it does not offer to run the node") for it in ("FirstExecutionProvider", TOY)]
    assert found.counts == {"FirstExecutionProvider": (2, 1), TOY: (1, 1), MAIN: (2, 2), SESSION: (0, 0)}


def test_the_text_has_parts_reasons_and_refusals_with_the_path(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Toy(lambda viewer: [together(viewer, 0, 2), *pairs(viewer)] if viewer.nodes else [])
    done = invoked(monkeypatch, toy, model, "--provider", TOY)
    assert done.exit_code == 1
    assert f"1  {TOY}: 2 nodes in 1 part" in done.output
    path = "/0:MatMul -> /1:Relu -> /2:MatMul"
    assert f"{TOY}: /0:MatMul, /2:MatMul: a path leaves the nodes and enters them again: {path}" in done.output


def test_json_has_every_part_and_who_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = invoked(monkeypatch, Toy(grows), model, "--provider", TOY, "--format", "json")
    assert done.exit_code == 0
    data = json.loads(done.output)
    assert data["schema"] == "sonnx-partition/1" and data["providers"] == [TOY, MAIN] and not data["refused"]
    assert [(it["provider"], [n["node"] for n in it["nodes"]]) for it in data["parts"]] == [
        (TOY, ["/0:MatMul"]), (MAIN, ["/1:Relu"]), (TOY, ["/2:MatMul"]), (MAIN, ["/3:Neg"]), (MAIN, ["/4:Relu"]),
    ]  # fmt: skip
    assert data["parts"][1]["nodes"][0]["others"] == [{"provider": TOY, "why": "it does not offer to run the node"}]


def test_the_picture_colours_each_provider(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jinja2")
    target = tmp_path / "page.html"
    done = invoked(monkeypatch, Toy(grows), model, "--provider", TOY, "--format", "html", "--output", target)
    assert done.exit_code == 0 and not done.output
    page = target.read_text(encoding="utf-8")
    assert f"{TOY}: 2 nodes in 2 parts" in page and "Toy_0" in page


def test_wrong_input_is_one_line(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = invoked(monkeypatch, Toy(grows), model, "--provider", "TouExecutionProvider")
    assert str(done.exception).count("\n") == 0 and "did you mean ToyExecutionProvider" in str(done.exception)


def test_the_help_has_two_examples() -> None:
    shown = CliRunner().invoke(partition, ["--help"]).output
    assert shown.count("sonnx partition model.onnx") == 2


def test_random_providers_are_explained(model: Path) -> None:
    names = [f"{it}ExecutionProvider" for it in "ABC"]
    found = explained(load(model), [RandomExecutionProvider(at, it) for at, it in enumerate(names)])
    assert all([it.provider for it in row] == [it for it in (*names, MAIN) if it not in by] for row, by in (
        (found.others[n], {it.provider for it in found.partitioning.assignments if n in it.nodes}) for n in range(5)
    ))  # fmt: skip
