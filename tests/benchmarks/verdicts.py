"""The table of verdicts: what four parties say about each shared model, and why they differ.

    python tests/benchmarks/verdicts.py --output verdicts.jsonl [--markdown verdicts.md] [FOLDER ...]

The parties are `certify` with the default rule set, onnx.checker (full_check), onnxruntime and the machine, the last
two on the same inputs: stored ones where the model has a data set, else drawn, of sizes that satisfy the conditions of
the verdict. Each model is judged in processes of its own, since runtimes crash. A model that stands in the output
already is not judged again. Exit code 1 where the parties differ and the reason is neither evident nor in EXPLAINED.
"""

from __future__ import annotations

import argparse
import csv
import json
import pickle
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

SHARED = (Path(__file__).parents[2] / ".." / "shared").resolve()
SECONDS = 180
"""How long one model may take each side."""

EXPLAINED: Mapping[str, str] = {
    "models/invalid/onnx-tests/shape_type/test_function_output_count_mismatch_does_not_crash.onnx": (
        "the call lists one of the two outputs of its function, as CallsFit allows, and leaves a dead node in it;"
        " ONNX's inference, which onnxruntime uses, gives types to both and refuses the second"
    ),
    "misjudged/bn9_train.onnx": (
        "the optional outputs ask for training, which the definition does not give (R2);"
        " onnxruntime has a kernel, onnx.checker judges no requirement"
    ),
}
"""The reason for a difference, by the path of the model, where it is not evident from what the parties say."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is said about one model. rules: the counted rules behind a verdict that is not CONFORMS. owed: the rules
    with obligations."""

    path: str
    default: str
    rules: tuple[str, ...]
    last: str
    checker: str
    onnxruntime: str
    machine: str
    owed: tuple[str, ...] = ()

    @property
    def agreed(self) -> bool:
        """Whether the four parties accept the model, or all refuse it."""
        return len({accepts(said) for said in (self.default, self.checker, self.onnxruntime, self.machine)}) == 1


def accepts(said: str) -> bool:
    """Whether a party accepts."""
    return said in ("CONFORMS", "accepts", "runs")


# ---- Why they differ --------------------------------------------------------------------------


def explanation(row: Row) -> str:
    """The reason for a difference; empty where none is known. Each party that differs needs a reason of its own."""
    if row.path in EXPLAINED:
        return EXPLAINED[row.path]
    if row.default == "UNDECIDED":
        found = re.search(r": the specification gives no executable meaning to (.*)\.$", row.last)
        refuses = row.machine.startswith("refuses: the specification gives no meaning to")
        return f"no meaning of {found[1]}" if found and refuses else ""
    wanted = row.default == "CONFORMS"
    reasons = [
        _refusal(row, party) if wanted else _acceptance(row, party)
        for party in ("checker", "onnxruntime", "machine")
        if accepts(getattr(row, party)) is not wanted
    ]
    own = row.default == "VIOLATES" and not any(rule.startswith(OTHERS) for rule in row.rules)
    if own and len(reasons) < 3:  # a party refuses what only the graph rules of SONNX forbid
        return ""
    return "; ".join(dict.fromkeys(reasons)) if all(reasons) else ""


OTHERS = ("onnx ", "domain ")
"""The rule sets that other parties know too."""
LACKS = (
    (r"NOT_IMPLEMENTED|Could not find an implementation", "onnxruntime has no kernel for an operator"),
    (r"is under development and support for this is limited|Unsupported model IR version", "newer than onnxruntime"),
    (r"is not a registered function/op|No Op registered", "onnxruntime lacks an operator"),
)
EXTERNAL = r"ernal data of tensor|have the (length|offset)"
UNSEEN: Mapping[str, Mapping[str, str]] = {
    "checker": {
        "onnx inference/operator": "onnx.checker does not propagate data",
        "domain ": "onnx.checker judges no requirement of operators",
        "sonnx ": "SONNX asks for more",
    },
    "onnxruntime": {
        "onnx value-name": "onnxruntime does not ask for names",
        "onnx graph-name": "onnxruntime does not ask for names",
        "onnx interface-type": "onnxruntime does not ask for shapes of the interface",
        "onnx sorted": "onnxruntime sorts the nodes itself",
        "onnx type/agreement": "to onnxruntime a wrong declared shape is a warning",
        "domain shapes": "to onnxruntime a wrong declared shape is a warning",
        "sonnx ": "SONNX asks for more",
    },
    "machine": {
        "onnx ": "the machine runs what has a value, well-formedness is judged before",
        "sonnx ": "the machine runs what has a value, well-formedness is judged before",
    },
}
"""Why a party accepts what violates a rule, by party and the beginning of the rule's name. The machine never runs past
a violated requirement of an operator."""


def _acceptance(row: Row, party: str) -> str:
    """Why a party accepts what violates or cannot be read: it looks at none of the rules that are violated."""
    if row.default == "unreadable":
        found = party == "checker" and re.search(EXTERNAL, row.last)
        return "onnx.checker does not open external data" if found else ""
    known = UNSEEN[party]
    said = [next((why for name, why in known.items() if rule.startswith(name)), "") for rule in row.rules]
    return "; ".join(dict.fromkeys(said)) if said and all(said) else ""


def _refusal(row: Row, party: str) -> str:
    """Why a party refuses what conforms, where that is no contradiction."""
    said = getattr(row, party)
    owed = row.machine.startswith("stuck: ") and _is_owed(row)
    if party == "machine" and owed:
        return "the data do not keep to an obligation"
    if party == "onnxruntime" and said.startswith("fails") and owed:
        return "the data do not keep to an obligation"
    if party == "onnxruntime":
        return next((reason for pattern, reason in LACKS if re.search(pattern, said)), "")
    return ""


def _is_owed(row: Row) -> bool:
    """Whether the machine is stuck at what the verdict lists as an obligation: of the same operator, or a shape."""
    rule = row.machine.removeprefix("stuck: ").partition(":")[0]
    if rule == "AsDeclared":
        return "shapes" in row.owed
    return any(owed.partition("-")[0] == rule.partition("-")[0] or owed == "data-shapes" for owed in row.owed)


# ---- What the parties say ---------------------------------------------------------------------


def models(folders: list[Path]) -> Iterator[tuple[str, Path]]:
    """The models of the shared folders by their manifests, or all models of other folders."""
    for folder in folders:
        manifest = folder / "MANIFEST.tsv"
        if manifest.is_file():
            with manifest.open(encoding="utf-8", newline="") as file:
                names = [row["path"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
        else:
            names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.onnx"))
        for name in names:
            if name.endswith((".onnx", ".pb")) and "test_data_set" not in name:
                yield f"{folder.name}/{name}", folder / name


def judged(name: str, path: Path) -> Row:
    """What the parties say about one model."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "inputs.pickle"
        ours = _asked("ours", path, inputs)
        theirs = _asked("theirs", path, inputs)
    return Row(
        name,
        str(ours.get("default", ours["ended"])),
        tuple(map(str, ours.get("rules", []))),  # type: ignore[arg-type]
        str(ours.get("last", "")),
        str(theirs.get("checker", theirs["ended"])),
        str(theirs.get("onnxruntime", theirs["ended"])),
        str(ours.get("machine", ours["ended"])),
        tuple(map(str, ours.get("owed", []))),  # type: ignore[arg-type]
    )


def _asked(side: str, path: Path, inputs: Path) -> dict[str, object]:
    """The answers of a process that asks one side; `ended` says how the process ended."""
    command = [sys.executable, __file__, "--ask", side, str(path), str(inputs)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        output = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        return {"ended": f"more than {SECONDS} s", **_lines(output)}
    ended = "ended" if done.returncode == 0 else f"crash ({done.returncode}): {_short(done.stderr)}"
    return {"ended": ended, **_lines(done.stdout)}


def _lines(output: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for line in output.splitlines():
        if line.startswith("{"):
            found |= json.loads(line)
    return found


def _short(text: str) -> str:
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= 200 else f"{words[:100]} ... {words[-95:]}"


def _tell(**said: object) -> None:
    print(json.dumps(said), flush=True)  # noqa: T201 - the answer to the process that asks


def ask_ours(path: Path, inputs: Path) -> None:
    """The default verdict, and what the machine does."""
    import io

    from sonnx.checker import certify
    from sonnx.checker.certification.formats.text import write
    from sonnx.semantics.errors import ModelError, Unsupported
    from sonnx.semantics.machine.execution import run
    from sonnx.semantics.model.loader import load
    from sonnx.spec.terminal import output_console

    try:
        model = load(path)
        report = certify(model)
    except (ModelError, Unsupported) as error:
        _tell(default="unreadable", last=_short(str(error)), machine=f"refuses: {_short(str(error))}")
        return
    out = io.StringIO()
    write(report, output_console(out))
    against = {"VIOLATES": "violated", "UNDECIDED": "unknown"}.get(report.verdict)
    rules = [f"{rule.rule_set} {rule.id}" for rule in report.rules if rule.counted and rule.verdict == against]
    owed = sorted({rule.id for rule in report.rules if rule.obligations})
    _tell(default=report.verdict.value, rules=rules, owed=owed, last=out.getvalue().splitlines()[-1])
    try:
        values = _inputs(model, path, dict(report.domain.example) if report.domain is not None else {})
        from sonnx.semantics.runtimes.backend import exchanged

        inputs.write_bytes(pickle.dumps({name: exchanged(value) for name, value in values.items()}))
        ended = run(model, values, history=False)
    except (ModelError, Unsupported) as error:
        _tell(machine=f"refuses: {_short(str(error))}")
        return
    stuck = ended.stuck
    _tell(machine="runs" if stuck is None else f"stuck: {stuck.rule}: {_short(stuck.message)}")


def _inputs(model: object, path: Path, sizes: Mapping[str, int]) -> dict[str, object]:
    """Stored inputs where the model has a data set, else drawn ones of the given sizes."""
    import numpy as np
    from onnx import OptionalProto, SequenceProto, TensorProto, numpy_helper
    from sonnx.semantics.machine.inputs import declared_inputs, random_inputs, random_tensor
    from sonnx.semantics.runtimes.backend import received

    read = {
        "tensor": lambda data: numpy_helper.to_array(TensorProto.FromString(data)),
        "sequence": lambda data: list(numpy_helper.to_list(SequenceProto.FromString(data))),
        "optional": lambda data: numpy_helper.to_optional(OptionalProto.FromString(data)),
    }
    declared = declared_inputs(model)  # type: ignore[arg-type]
    stored = path.parent / "test_data_set_0"
    if len(list(path.parent.glob("*.onnx"))) == 1 and (stored / "input_0.pb").is_file():
        files = [stored / f"input_{number}.pb" for number in range(len(declared))]
        return {
            name: received(read[stated.kind if stated else "tensor"](file.read_bytes()), stated)
            for file, (name, (_, stated, _)) in zip(files, declared.items(), strict=True)
            if file.is_file()
        }
    generator = np.random.Generator(np.random.PCG64(1))
    given: dict[str, object] = {}
    for name, (_, stated, needed) in declared.items():
        if needed and stated is not None and stated.kind == "tensor" and stated.element and stated.shape is not None:
            labels = [size if size else f"{name}[{axis}]" for axis, size in enumerate(stated.shape)]
            shape = tuple(
                size if isinstance(size, int) and size >= 0 else sizes.get(str(label), 1)
                for size, label in zip(stated.shape, labels, strict=True)
            )
            given[name] = random_tensor(stated.element, shape, generator)
    drawn, _ = random_inputs(model, 1, given)  # type: ignore[arg-type]
    return {**given, **drawn}


def ask_theirs(path: Path, inputs: Path) -> None:
    """What onnx.checker says, and what onnxruntime does."""
    import onnx

    try:
        onnx.checker.check_model(str(path), full_check=True)
        _tell(checker="accepts")
    except Exception as error:
        _tell(checker=f"refuses: {_short(str(error))}")
    try:
        import onnxruntime
    except ImportError:
        _tell(onnxruntime="not installed")
        return
    onnxruntime.set_default_logger_severity(4)
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        _tell(onnxruntime=f"refuses: {_short(str(error))}")
        return
    if not inputs.is_file():
        _tell(onnxruntime="runs" if not session.get_inputs() else "opens; no inputs could be drawn")
        return
    values = pickle.loads(inputs.read_bytes())
    try:
        session.run(None, values)
        _tell(onnxruntime="runs")
    except Exception as error:
        _tell(onnxruntime=f"fails: {_short(str(error))}")


# ---- The table --------------------------------------------------------------------------------


def markdown(rows: list[Row]) -> Iterator[str]:
    """The table, and before it how often the parties agree."""
    agreed = sum(row.agreed for row in rows)
    open_ = [row for row in rows if not row.agreed and not explanation(row)]
    counted = ", ".join(f"{number} {verdict}" for verdict, number in sorted(Counter(r.default for r in rows).items()))
    yield f"{len(rows)} models: {counted}. The four agree on {agreed}; {len(open_)} differences are not explained."
    yield ""
    yield "| model | default | onnx.checker | onnxruntime | machine | difference |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        why = "" if row.agreed else explanation(row) or "NOT EXPLAINED"
        default = f"{row.default}: {', '.join(row.rules[:4])}" if row.rules else row.last.partition(".onnx ")[2]
        cells = (row.path, default or row.default, row.checker, row.onnxruntime, row.machine, why)
        yield f"| {' | '.join(cell[:110].replace('|', '/') for cell in cells)} |"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[SHARED / "models", SHARED / "misjudged"])
    parser.add_argument("--output", type=Path, help="rows as lines of JSON; those that stand there are kept")
    parser.add_argument("--markdown", type=Path, help="the table as Markdown")
    parser.add_argument("--ask", nargs=3, metavar=("SIDE", "MODEL", "INPUTS"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.ask:
        side, path, inputs = chosen.ask
        (ask_ours if side == "ours" else ask_theirs)(Path(path), Path(inputs))
        return 0
    rows: dict[str, Row] = {}
    if chosen.output and chosen.output.is_file():
        for line in chosen.output.read_text(encoding="utf-8").splitlines():
            made = json.loads(line)
            rows[made["path"]] = Row(**{**made, "rules": tuple(made["rules"]), "owed": tuple(made.get("owed", ()))})
    wanted = list(models(chosen.folders))
    for name, path in wanted:
        if name not in rows:
            rows[name] = judged(name, path)
            if chosen.output:
                with chosen.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(rows[name])) + "\n")
            print(f"{len(rows)}/{len(wanted)} {name}: {rows[name].default}", file=sys.stderr)  # noqa: T201 - progress
    found = [rows[name] for name, _ in wanted]
    text = "\n".join(markdown(found)) + "\n"
    if chosen.markdown:
        chosen.markdown.write_text(text, encoding="utf-8")
    else:
        print(text, end="")  # noqa: T201 - the result
    return int(any(not row.agreed and not explanation(row) for row in found))


if __name__ == "__main__":
    sys.exit(main())
