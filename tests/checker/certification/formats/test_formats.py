"""The formats of the report: schemas, hostile names, stability."""

import json
import re
import shutil
import subprocess
import tarfile
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import jsonschema
import onnx
import pytest
from command_calls import called
from onnx import TensorProto, helper
from picture_models import column, page_data, unfolded
from sonnx.checker import Report, certify
from sonnx.checker.certification.examples import examples
from sonnx.checker.certification.formats import render
from sonnx.checker.certification.formats.html import Cover, to_frame, to_html
from sonnx.spec import digests

HOSTILE = '</script><img src=x onerror=alert(1)>\x1b[31m\r\u202e"\\\x07'


def hostile_model() -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Relu", ["x"], [f"y{HOSTILE}"], f"n{HOSTILE}"),
        helper.make_node("Relu", ["x"], ["out"], "fine"),
        helper.make_node(f"Op{HOSTILE}", ["x"], [f"z{HOSTILE}"], "custom", domain=f"d{HOSTILE}"),
    ]
    x, idle, out = (value(name, TensorProto.FLOAT, [2]) for name in ("x", f"i{HOSTILE}", "out"))
    graph = helper.make_graph(nodes, f"g{HOSTILE}", [x, idle], [out])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10, producer_name=HOSTILE)


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    chosen = ("conforming", "working-group", "cycle", "branches-disagree", "any-size", "index-input")
    texts = {example.name: example.text for example in examples()}
    models = [*(onnx.parser.parse_model(texts[name]) for name in chosen), hostile_model()]
    return [certify(model, ("all",)) for model in models]


def test_json_is_valid_against_the_schema_of_the_package(reports: list[Report]) -> None:
    schema = json.loads(files("sonnx.checker.certification.formats").joinpath("report.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for report in reports:
        jsonschema.validate(json.loads(render(report, "json")), schema, cls=jsonschema.Draft202012Validator)


def test_every_format_is_plain_ascii_or_escaped(reports: list[Report]) -> None:
    hostile = reports[-1]
    assert render(hostile, "json").isascii()
    assert render(hostile, "sarif").isascii()
    page = to_html(hostile)
    assert not set(page) & {"\x1b", "\x07", "\r", "\u202e"}


class Tags(HTMLParser):
    """Collects tags and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}


def test_html_runs_no_script_and_loads_nothing(reports: list[Report]) -> None:
    for report in reports:
        page = to_html(report)
        tags = Tags()
        tags.feed(page)
        assert not tags.tags & {"script", "img", "link", "iframe", "object", "embed", "base", "form"}
        assert not [a for a in tags.attributes if a[0].startswith("on") or a[0] in ("src", "style")]
        assert all(value.startswith("#rule-") for name, value in tags.attributes if name == "href")
        assert "default-src 'none'" in unescape(page)


def test_html_draws_the_graph_around_a_violation(reports: list[Report]) -> None:
    page = to_html(reports[1])
    assert "<svg" in page
    assert re.search(r'class="node focus".*?3:Sub', page, re.DOTALL)


def rows(page: str, table: str) -> list[list[str]]:
    """The texts of the cells of a table of a page."""
    (body,) = re.findall(rf'<table class="{table}">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)[:1]
    cells = (re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in body.split("</tr>") if "<td" in row)
    return [[unescape(re.sub("<[^>]+>", "", cell)).strip() for cell in row] for row in cells]


def test_html_traces_every_rule_from_its_clause_to_its_evidence(reports: list[Report]) -> None:
    report = reports[1]
    page = to_html(report, Cover("A title", "A project", "2026-01-02", "sonnx certify m.onnx"))
    for said in ("A title", "A project", "2026-01-02", "sonnx certify m.onnx", digests.of_code(), "Not examined"):
        assert said in page
    assert all(rule_set.digest in page for rule_set in report.rule_sets)
    first = report.rule_sets[0]
    own = [rule for rule in report.rules if rule.rule_set == first.name]
    traced = rows(page, "trace")
    assert [row[0] for row in traced] == [rule.source for rule in own]
    assert [row[3].split()[0].strip(",") for row in traced] == [rule.verdict for rule in own]
    assert all(row[2] and row[4] for row in traced)
    anchors = re.findall(r'href="#(rule-\d+)"', page)
    assert len(set(anchors)) == len(report.rules) and all(f'id="{anchor}"' in page for anchor in anchors)
    quotes = {rule.quote for rule in report.rules if rule.quote}
    assert quotes and all(quote in unescape(page) for quote in quotes)


def test_html_lists_what_is_left_to_data_and_has_a_date_on_request_only(reports: list[Report]) -> None:
    page = to_html(reports[5])
    place = ["Gather-1/indices_in_range", "/0:Gather", "data"]
    assert place in [row[:3] for row in rows(page, "left")]
    assert "<dt>date</dt>" not in page
    assert page == to_html(reports[5])


def test_a_notebook_gets_a_sandboxed_frame(reports: list[Report]) -> None:
    assert reports[0]._repr_html_() == to_frame(reports[0])
    assert "<iframe sandbox srcdoc=" in to_frame(reports[0])


def test_sarif_carries_every_verdict_of_the_rule_sets_asked_for(reports: list[Report]) -> None:
    for report in reports:
        (run,) = json.loads(render(report, "sarif"))["runs"]
        ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert ids == [f"{rule.rule_set}/{rule.id}" for rule in report.rules]
        (summary,) = run["properties"]["models"]
        assert {result["ruleId"] for result in run["results"]} | set(summary["holding"]) == set(ids)
        assert not {result["ruleId"] for result in run["results"]} & set(summary["holding"])
        left = {"conditional": "review", "obligation": "review"}
        kinds = {"violated": "fail", "unknown": "open", **left}
        verdicts = {f"{rule.rule_set}/{rule.id}": kinds.get(rule.verdict) for rule in report.rules}
        assert all(result["kind"] == verdicts[result["ruleId"]] for result in run["results"])
        assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in run["results"])


def test_each_format_tells_conditions_and_obligations(reports: list[Report]) -> None:
    sizes, data = (
        certify(onnx.parser.parse_model(text))
        for text in (example.text for example in examples() if example.name in ("any-size", "index-input"))
    )
    stated = [json.loads(render(report, "json")) for report in (sizes, data)]
    assert [(it["conditions"], it["obligations"]) for it in stated] == [(["H >= 3", "W >= 3"], 0), ([], 1)]
    (listed,) = (place for rule in stated[1]["rules"] for place in rule["obligations"])
    assert listed["where"] == "/0:Gather" and "positions[0] <= 4" in listed["condition"]
    (listed,) = (place for rule in stated[0]["rules"] for place in rule["conditional"])
    assert (listed["where"], listed["condition"]) == ("/0:Conv", "H >= 3 and W >= 3")
    assert "<strong>CONFORMS</strong> to sonnx for H &gt;= 3, W &gt;= 3</p>" in to_html(sizes)
    assert "<strong>CONFORMS</strong> to sonnx, with 1 obligation on data</p>" in to_frame(data).replace(
        "&lt;", "<"
    ).replace("&gt;", ">")
    (run,) = json.loads(render(data, "sarif"))["runs"]
    assert run["properties"]["models"][0]["obligations"] == 1
    assert [
        r["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] for r in run["results"] if r["kind"] == "review"
    ]


def test_strict_mode_is_told_to_scanning_services() -> None:
    text = next(example.text for example in examples() if example.name == "any-size")
    (run,) = json.loads(render(certify(onnx.parser.parse_model(text), strict=True), "sarif"))["runs"]
    failed = {r["ruleId"]: r["level"] for r in run["results"] if r["kind"] == "fail"}
    assert failed == {"domain/Conv-11/kernel_fits": "error"}


@pytest.fixture(scope="module")
def sarif_schema(tmp_path_factory: pytest.TempPathFactory) -> object:
    """The schema of SARIF 2.1.0 as Microsoft publishes it for jest; fetched by npm, never stored here."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: the SARIF schema cannot be fetched")
    folder = tmp_path_factory.mktemp("sarif")
    pack = ["npm", "pack", "@microsoft/jest-sarif@1.0.0-beta.0"]
    done = subprocess.run(pack, cwd=folder, capture_output=True, timeout=120)
    archives = list(Path(folder).glob("*.tgz"))
    if done.returncode or not archives:
        pytest.skip("npm could not fetch the SARIF schema")
    with tarfile.open(archives[0]) as archive:
        member = archive.extractfile("package/lib/schemas/sarif-2.1.0-rtm.5.json")
        assert member is not None
        return json.load(member)


def test_sarif_is_valid_against_the_schema_of_the_standard(
    reports: list[Report], sarif_schema: dict[str, object]
) -> None:
    validator = jsonschema.validators.validator_for(sarif_schema)(sarif_schema)
    for report in reports:
        assert [error.message for error in validator.iter_errors(json.loads(render(report, "sarif")))] == []


def test_the_schema_that_a_report_names_is_printed_by_a_command(
    reports: list[Report], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = called(capsys, "schema")
    assert code == 0
    assert json.loads(render(reports[0], "json"))["$schema"] == json.loads(out)["$id"]


def test_a_report_is_shown_in_one_line(reports: list[Report]) -> None:
    assert re.fullmatch(r"<Report of a model: VIOLATES, .*sonnx.*; rules: \d+ holds, \d+ violated.*>", repr(reports[1]))
    assert "\x1b" not in repr(reports[-1])


def test_the_page_shows_the_findings_on_the_graph(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    texts = {example.name: example.text for example in examples()}
    for name, expected in (("working-group", "violated"), ("index-input", "obligation"), ("conforming", "none")):
        path = tmp_path / f"{name}.onnx"
        onnx.save(onnx.parser.parse_model(texts[name]), path)
        _, page, _ = called(capsys, "certify", path, "--format", "html")
        data = page_data(page)
        names = [mark[0] for mark in data["marks"]]
        marked = [{names[i] for i in range(len(names)) if bits & (1 << i)} for bits in unfolded(data["marked"]) if bits]
        assert any(expected in it for it in marked) and len(marked) == data["kind"].count("0")
        assert all("none" in it for it in marked) == (expected == "none")
        assert all(column(data, "type", "type"))
        assert "The drawing is made by a script in this page" in page
        assert "script-src &#39;sha256-" in page and page.count("<script") == 2
        assert called(capsys, "certify", path, "--format", "html")[1] == page


def test_hostile_names_stay_text_in_the_drawing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    onnx.save(hostile_model(), tmp_path / "hostile.onnx")
    _, page, _ = called(capsys, "certify", tmp_path / "hostile.onnx", "--format", "html")
    assert page.count("<script") == page.count("</script>") == 2 and "<img" not in page
    assert not set(page) & {"\x1b", "\x07", "\r", "\u202e"}
