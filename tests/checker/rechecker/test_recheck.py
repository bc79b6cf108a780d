"""The replay confirms what the certifier found, refutes what is otherwise, and names what it cannot replay."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper
from sonnx.checker import recheck, rechecker
from sonnx.checker.certification import certificate as form
from sonnx.checker.certification import rule_sets
from sonnx.checker.certification.results import NOT_EXAMINED, OF_USERS
from sonnx.checker.certification.witness import witness_of
from sonnx.checker.commands.recheck import recheck as command
from sonnx.checker.rechecker import Outcome
from sonnx.checker.rechecker.facts import external_locations, facts
from sonnx.checker.rechecker.files import parse
from sonnx.checker.rechecker.reader import read
from sonnx.checker.rechecker.replay import Evaluation
from sonnx.checker.rechecker.schema import schema_of
from sonnx.checker.rechecker.text import Text, texts
from sonnx.checker.rechecker.witness import fits
from sonnx.semantics.errors import ModelError
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.facts.inference.model import infer
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load
from sonnx.spec.library import specification

MODELS = Path(__file__).parents[3] / ".." / "shared" / "models"
OTHER_RULES = ("onnx", "sonnx-operators")

BUILT = ("chain", "broken", "branches", "unequal branches", "calls", "training")

Build = Callable[[str], onnx.ModelProto]
Certified = Callable[..., tuple[bytes, Path]]
Issued = Callable[..., bytes]


# ---- Outcomes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "strict"), [*((name, False) for name in BUILT), ("chain", True), ("broken", True)])
def test_the_certificate_of_a_model_is_confirmed(name: str, strict: bool, certified: Certified) -> None:
    assert recheck(*certified(name, strict=strict)) == rechecker.Recheck(Outcome.CONFIRMED)


def test_the_built_models_cover_the_verdicts(certified: Certified) -> None:
    found = {name: json.loads(certified(name)[0])["predicate"]["verdict"] for name in BUILT}
    assert found == {
        "chain": "CONFORMS",
        "broken": "VIOLATES",
        "branches": "CONFORMS",
        "unequal branches": "VIOLATES",
        "calls": "CONFORMS",
        "training": "VIOLATES",
    }


@pytest.mark.parametrize(("name", "notation"), [("chain", "text"), ("branches", "text"), ("chain", "listing")])
def test_the_certificate_of_a_textual_model_is_confirmed(
    name: str, notation: str, tmp_path: Path, build: Build, issued: Issued
) -> None:
    path = tmp_path / "model.txt"
    path.write_text(onnx.printer.to_text(build(name)) if notation == "text" else listing(build(name)))
    data = issued(path)
    assert json.loads(data)["predicate"]["model"]["source"] == notation
    assert recheck(data, path).outcome is Outcome.CONFIRMED


def listing(proto: onnx.ModelProto) -> str:
    with pytest.warns(DeprecationWarning):
        return helper.printable_graph(proto.graph)


def test_the_body_of_a_listing_is_confirmed(tmp_path: Path, issued: Issued) -> None:
    path = tmp_path / "model.txt"
    path.write_text(
        "inputs I1, I2\n%O1 = Add(%I1, %I2)\n%op2_out = Constant[value = <Tensor>]()\n%O2 = Mul(%O1, %op2_out)\n"
        "%op4_out = Sub(%I1, %I2)\nreturn %O1, %O2\n"
    )
    data = issued(path)
    assert json.loads(data)["predicate"]["verdict"] == "VIOLATES"
    assert recheck(data, path).outcome is Outcome.CONFIRMED


@pytest.mark.parametrize("name", ["branches", "calls"])
def test_both_readers_read_the_same_in_a_listing(name: str, tmp_path: Path, build: Build) -> None:
    path = tmp_path / "model.txt"
    path.write_text(listing(build(name)))
    same(name, load(path), *reversed(parse(path.read_bytes())))


def test_external_data_are_part_of_what_is_certified(tmp_path: Path, build: Build, issued: Issued) -> None:
    path = tmp_path / "model.onnx"
    proto = build("chain")
    onnx.external_data_helper.convert_model_to_external_data(proto, location="weights.bin", size_threshold=0)
    onnx.save(proto, path)
    data = issued(path)
    weights = tmp_path / "weights.bin"
    assert [entry["name"] for entry in json.loads(data)["subject"]] == ["model.onnx", "weights.bin"]
    assert recheck(data, path).outcome is Outcome.CONFIRMED
    original = weights.read_bytes()
    weights.write_bytes(b"\0" * 8)
    assert recheck(data, path).outcome is Outcome.REFUTED
    weights.unlink()
    assert recheck(data, path).outcome is Outcome.REFUTED
    (tmp_path / "elsewhere").write_bytes(original)
    weights.symlink_to(tmp_path / "elsewhere")
    assert recheck(data, path).outcome is Outcome.REFUTED


def test_the_name_of_the_model_file_does_not_matter(tmp_path: Path, certified: Certified) -> None:
    data, path = certified("chain")
    other = tmp_path / "other.onnx"
    other.write_bytes(path.read_bytes())
    assert recheck(data, other).outcome is Outcome.CONFIRMED


def test_another_model_is_refuted(certified: Certified) -> None:
    found = recheck(certified("chain")[0], certified("calls")[1])
    assert found.outcome is Outcome.REFUTED
    assert found.reasons == ("the model file is not the one that was certified: its SHA-256 differs",)


def test_another_edition_of_the_rules_is_not_checked(certified: Certified) -> None:
    data, path = certified("chain")
    statement = json.loads(data)
    statement["predicate"]["rule_sets"][0]["digest"] = "0" * 64
    found = recheck(form.seal(statement), path)
    assert found.outcome is Outcome.NOT_CHECKED
    assert "another digest" in found.reasons[0]


@pytest.mark.parametrize("name", BUILT)
def test_rules_that_need_types_and_schemas_are_confirmed_too(name: str, certified: Certified) -> None:
    assert recheck(*certified(name, OTHER_RULES)) == rechecker.Recheck(Outcome.CONFIRMED)


def test_a_missing_or_unreadable_model_is_an_error(tmp_path: Path, certified: Certified) -> None:
    data, _ = certified("chain")
    for path in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(ModelError, match=r"\Athe model [ -~]+\Z"):
            recheck(data, path)


# ---- Agreement with the loader, the evaluator and the certifier ---------------------------------


def shared() -> list[Path]:
    found = sorted(path for path in MODELS.rglob("*") if path.suffix in (".onnx", ".pb"))
    return [path for path in found if path.stat().st_size < 2**22 and "test_data_set" not in str(path)]


def readable() -> Iterator[tuple[str, Model, onnx.ModelProto, str]]:
    """Every model that both readers read; the notation as the rechecker sees it."""
    for path in shared():
        try:
            model = load(path)
        except ModelError:
            continue
        source, proto = parse(path.read_bytes())
        yield str(path.relative_to(MODELS)), model, proto, source


def same(name: str, model: Model, proto: onnx.ModelProto, source: str) -> None:
    """Both readings of a model agree."""
    reading = read(proto)
    assert source == model.source, name
    assert [g.path for g in reading.graphs] == [g.path for g in model.graphs], name
    assert [n.path for n in reading.nodes] == [n.path for n in model.nodes], name
    assert [t.path for t in reading.tensors] == [t.path for t in model.tensors], name
    for node, other in zip(reading.nodes, model.nodes, strict=True):
        schema = schema_of(node)
        assert (node.inputs, node.outputs) == (other.inputs, other.outputs), (name, node.path)
        assert tuple(node.bodies) == tuple(body for _, body in other.bodies), (name, node.path)
        assert (schema.since_version if schema else None) == other.version, (name, node.path)
    assert (reading.opsets, reading.functions) == (model.opsets, model.functions), name
    assert external_locations(reading) == sorted(file.name for file in model.files[1:]), name


@pytest.mark.skipif(not MODELS.is_dir(), reason="the shared models are not there")
def test_both_readers_read_the_same_in_every_shared_model() -> None:
    count = 0
    for name, model, proto, source in readable():
        count += 1
        same(name, model, proto, source)
    assert count > 100


@pytest.fixture(scope="module")
def text() -> Text:
    return texts()


def small() -> Iterator[Path]:
    """Some of the shared models, and all that were misjudged once."""
    yield from shared()[::24]
    yield from sorted((MODELS.parent / "misjudged").glob("*.onnx"))


@pytest.mark.skipif(not MODELS.is_dir(), reason="the shared models are not there")
def test_both_evaluators_agree_on_every_constraint_on_shared_models(text: Text) -> None:
    assert sum(agreements(path, text) for path in small()) > 2000


@pytest.mark.campaign
@pytest.mark.skipif(not MODELS.is_dir(), reason="the shared models are not there")
def test_both_evaluators_agree_on_every_constraint_on_every_shared_model(text: Text) -> None:
    assert sum(agreements(path, text) for path in shared()) > 20000


@pytest.mark.parametrize("seed", range(6))
def test_both_evaluators_agree_on_every_constraint_on_random_models(seed: int, tmp_path: Path, text: Text) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(random_model(random.Random(seed)), path)
    assert agreements(path, text) > 80


def agreements(path: Path, text: Text) -> int:
    """How many constraints are judged alike by the direct evaluator and by the rechecker, verdict and places; the
    witness of each that holds is the rechecker's own."""
    try:
        model = load(path)
    except ModelError:
        return 0
    spec = specification()
    rules = structure(model, lambda: infer(model, 60.0))
    source, proto = parse(path.read_bytes())
    evaluation = Evaluation(text, facts(read(proto), source, path.parent))
    for name in sorted({rule.constraint for profile in spec.profiles.values() for rule in profile.rules}):
        constraint = spec.constraints[name]
        judged = evaluation.judge(name)
        judgement = direct.judge(constraint, spec.functions, rules, limit=10**6)
        assert judged.verdict == judgement.verdict, (path, name, judged.why)
        places = [
            tuple((sort.name, element) for _, sort, element in instance.bindings)
            for instance in judgement.failures or judgement.unknowns
        ]
        assert [place.elements for place in judged.places] == places, (path, name)
        if judged.verdict == "holds":
            declared = evaluation.constraint(name)
            witness = witness_of(declared.clauses.get("evidence", "places"), model, rules)
            assert fits(witness, declared, text, evaluation.facts, evaluation.tables), (path, name)
    return len(spec.constraints)


def random_model(rng: random.Random) -> onnx.ModelProto:
    """A small graph, well-formed or not: bodies, calls, cycles, double names, omitted ports."""
    names = ["a", "b", "c", "d", "e", "f", ""]
    kinds = ["Add", "Relu", "Split", "Dropout", "BatchNormalization", "Loop", "If", "f", "g", "RandomNormal"]

    def node(depth: int) -> onnx.NodeProto:
        kind = rng.choice(kinds)
        inputs = [rng.choice(names) for _ in range(rng.randrange(4))]
        outputs = [rng.choice(names) for _ in range(rng.randrange(3))]
        if kind in ("f", "g"):
            return helper.make_node(kind, inputs, outputs, domain="own", name=rng.choice(["", "n"]))
        if kind in ("Loop", "If") and depth < 2:
            held = ["body"] if kind == "Loop" else ["then_branch", "else_branch"]
            return helper.make_node(kind, inputs, outputs, **{name: graph(depth + 1) for name in held})
        extra = {"training_mode": rng.randrange(2)} if kind == "BatchNormalization" else {}
        return helper.make_node(kind, inputs, outputs, **extra)

    def graph(depth: int) -> onnx.GraphProto:
        def some(most: int) -> list[str]:
            return [rng.choice(names[:-1]) for _ in range(rng.randrange(most))]

        stored = [helper.make_tensor(name, TensorProto.BOOL, [], [bool(rng.randrange(2))]) for name in some(2)]
        nodes = [node(depth) for _ in range(rng.randrange(1, 6 - depth))]
        inputs, outputs = ([helper.make_tensor_value_info(n, 1, [2]) for n in some(most)] for most in (4, 3))
        return helper.make_graph(nodes, "g", inputs, outputs, stored)

    opsets = [helper.make_opsetid("", 18)]
    function = helper.make_function(
        "own", "f", ["a", "b"], rng.choice([["c", "a"], ["c", "d"], ["c", "c"]]), [node(2) for _ in range(2)], opsets
    )
    while any(inner.domain == "own" for inner in function.node):
        function.node.pop()
    imports = opsets + [helper.make_opsetid("own", 1)] * rng.randrange(2)
    return helper.make_model(graph(0), opset_imports=imports, functions=[function], ir_version=10)


def test_the_rechecker_restates_what_the_certifier_says() -> None:
    assert rechecker.replay.NOT_EXAMINED == NOT_EXAMINED
    assert rechecker.replay.OF_USERS == OF_USERS
    assert rechecker.replay.LENIENT == rule_sets.UNCOUNTED


# ---- Reproducible bytes, and what is imported ---------------------------------------------------

ISSUE = """
import sys
from sonnx.checker.certification import certificate, certifier
report = certifier.certify(sys.argv[1], ("sonnx-2025-05", "sonnx-2025-10"), others=False, witnesses=True)
sys.stdout.buffer.write(certificate.seal(certificate.certificate(report)))
"""


def test_a_certificate_is_byte_identical_under_another_hash_seed_locale_and_place(tmp_path: Path, build: Build) -> None:
    found = set()
    for index, (seed, locale) in enumerate([("0", "C"), ("1", "C.UTF-8"), ("4711", "tr_TR.UTF-8")]):
        folder = tmp_path / str(index)
        folder.mkdir()
        path = folder / "model.onnx"
        onnx.save(build("broken"), path)
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": f"UTC{index}"}
        done = subprocess.run([sys.executable, "-c", ISSUE, path], cwd=folder, env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        found.add(done.stdout)
    assert len(found) == 1
    assert b"/tmp" not in found.pop()


def test_a_recheck_imports_neither_solver_nor_certifier_nor_loader(tmp_path: Path, certified: Certified) -> None:
    data, path = certified("branches")
    (tmp_path / "c.json").write_bytes(data)
    script = (
        "import sys; from sonnx.checker import recheck; print(recheck(*sys.argv[1:]).outcome);"
        "print(*sorted(m for m in sys.modules if m.startswith(('z3', 'sonnx.'))))"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "c.json", path], capture_output=True, text=True)
    outcome, loaded = done.stdout.splitlines()
    assert outcome == "CONFIRMED"
    others = {name for name in loaded.split() if not name.startswith(("z3", "sonnx.checker.rechecker"))}
    assert others == {"sonnx.checker", "sonnx.semantics", "sonnx.semantics.errors"}


# ---- The command --------------------------------------------------------------------------------


def run(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    return done.exit_code, done.output


def test_the_command_says_the_outcome_and_exits_accordingly(tmp_path: Path, certified: Certified) -> None:
    data, path = certified("chain")
    good, bad, other = (tmp_path / name for name in ("good.json", "bad.json", "other.json"))
    good.write_bytes(data)
    statement = json.loads(good.read_bytes())
    statement["predicate"]["verdict"] = "VIOLATES"
    bad.write_bytes(form.seal(statement))
    statement = json.loads(good.read_bytes())
    statement["predicate"]["rule_sets"][0]["digest"] = "0" * 64
    other.write_bytes(form.seal(statement))
    assert run(good, path) == (0, "CONFIRMED\n")
    assert run(bad, path) == (
        1,
        'REFUTED\n  the verdict is stated as "VIOLATES", derived as "CONFORMS"\n',
    )
    code, text = run(other, path)
    assert (code, text.splitlines()[0]) == (3, "NOT-CHECKED")
    code, text = run(bad, path, "--format", "json")
    assert (code, json.loads(text)["outcome"]) == (1, "REFUTED")


def test_an_unreadable_certificate_is_an_error_of_one_line(tmp_path: Path, certified: Certified) -> None:
    data, path = certified("chain")
    (tmp_path / "c.json").write_bytes(data[:-2])
    done = CliRunner().invoke(command, [str(tmp_path / "c.json"), str(path)])
    assert isinstance(done.exception, ModelError)
    assert str(done.exception).count("\n") == 0
