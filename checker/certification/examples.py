"""The example models of the package: some that conform, the working group's example, one for each rule broken.

They are written in ONNX's textual syntax and parsed on request, so the package ships no binary model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HEADER = '<ir_version: 10, opset_import: ["" : 21]>'


@dataclass(frozen=True, slots=True)
class Example:
    """A model in ONNX's textual syntax. breaks: the (rule set, rule) it is to break; None for one that conforms, some
    for certain sizes only, or with an obligation."""

    name: str
    about: str
    breaks: tuple[str, str] | None
    text: str


def examples() -> tuple[Example, ...]:
    """All example models, the conforming one first."""
    return (
        Example("conforming", "a small image classifier that conforms to every rule set", None, _classifier()),
        Example("working-group", "the working group's example of 4 nodes: the Sub is dead", BREAKS_R1, WORKING_GROUP),
        Example("any-size", "a convolution, wherever its kernel fits into the image", None, ANY_SIZE),
        Example("fixed-batch", "a batch of any size, wherever a Reshape can keep it", None, FIXED_BATCH),
        Example("index-input", "positions that the caller has to keep in range", None, INDEX_INPUT),
        *BROKEN,
    )


def write(folder: Path) -> tuple[Path, ...]:
    """Write every example as a binary model into `folder`, which is made; the working group's one as a listing too."""
    from onnx import parser

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for example in examples():
        model = parser.parse_model(example.text)
        target = folder / f"{example.name}.onnx"
        target.write_bytes(model.SerializeToString(deterministic=True))
        written.append(target)
        if example.name == "working-group":
            listing = folder / f"{example.name}.txt"
            listing.write_text(LISTING, encoding="utf-8")
            written.append(listing)
    return tuple(written)


def _tensor(name: str, shape: tuple[int, ...]) -> str:
    """A float initializer with small exact values, so that every sum over them is exact."""
    size = 1
    for dimension in shape:
        size *= dimension
    values = ", ".join(str((i * 7 % 11 - 5) / 8) for i in range(size))
    return f"float[{','.join(map(str, shape))}] {name} = {{{values}}}"


def _classifier() -> str:
    """Conv, Relu, MaxPool, Flatten, MatMul, Add, Softmax with every attribute written out and every shape static."""
    weights = ", ".join(_tensor(n, s) for n, s in (("W", (4, 1, 3, 3)), ("B", (4,)), ("F", (64, 10)), ("C", (1, 10))))
    return f"""{HEADER}
classifier (float[1,1,8,8] image) => (float[1,10] score) <{weights}> {{
  [convolution] c = Conv<auto_pad = "NOTSET", dilations = [1,1], group = 1, kernel_shape = [3,3],
    pads = [1,1,1,1], strides = [1,1]>(image, W, B)
  [activation] r = Relu(c)
  [pooling] p = MaxPool<auto_pad = "NOTSET", ceil_mode = 0, dilations = [1,1], kernel_shape = [2,2],
    pads = [0,0,0,0], storage_order = 0, strides = [2,2]>(r)
  [flat] f = Flatten<axis = 1>(p)
  [dense] m = MatMul(f, F)
  [bias] s = Add(m, C)
  [probabilities] score = Softmax<axis = 1>(s)
}}
"""


BREAKS_R1 = ("sonnx", "R1/per-node")

ANY_SIZE = f"""{HEADER}
g (float[1,1,H,W] image) => (float[1,4,a,b] maps)
  <float[4,1,3,3] kernels = {{{", ".join(str(i % 5 - 2) for i in range(36))}}}> {{
  edges = Conv(image, kernels)
  maps = Relu(edges)
}}
"""

INDEX_INPUT = f"""{HEADER}
g (float[5] table, int64[2] positions) => (float[2] picked) {{
  picked = Gather(table, positions)
}}
"""

FIXED_BATCH = f"""{HEADER}
g (float[N,1,H,8] image) => (float[a,b] scores)
  <float[4,1,3,3] kernels = {{{", ".join(str(i % 5 - 2) for i in range(36))}}}, int64[2] row = {{1, 144}}> {{
  maps = Conv(image, kernels)
  scores = Reshape(maps, row)
}}
"""

WORKING_GROUP = f"""{HEADER}
Test (float[N,M] I1, float[N,M] I2) => (float[N,M] O1, float[N,M] O2) {{
  O1 = Add(I1, I2)
  op2_out = Constant<value = float[1,1] {{2.0}}>()
  O2 = Mul(O1, op2_out)
  op4_out = Sub(I1, I2)
}}
"""


LISTING = """\
graph Test (
  %I1[FLOAT, ?x?]
  %I2[FLOAT, ?x?]
) {
  %O1 = Add(%I1, %I2)
  %op2_out = Constant[value = <Tensor>]()
  %O2 = Mul(%O1, %op2_out)
  %op4_out = Sub(%I1, %I2)
  return %O1, %O2
}
"""
"""The same graph as the working group's text shows it (graph.md, 2025-05-16, Examples), printed by printable_graph."""


def _broken(name: str, rule_set: str, rule: str, about: str, body: str, header: str = HEADER) -> Example:
    return Example(name, about, (rule_set, rule), f"{header}\n{body}\n")


SONNX, ONNX, DOMAIN = "sonnx", "onnx", "domain"
MAY, OCTOBER, APRIL = "sonnx-2025-05", "sonnx-2025-10", "sonnx-2025-04"

BROKEN = (
    _broken("single-assignment", SONNX, "C1", "two nodes write y",
        "g (float[2] x) => (float[2] y) {\n  y = Relu(x)\n  y = Neg(x)\n}"),
    _broken("input-usage", SONNX, "C2", "no node reads z",
        "g (float[2] x, float[2] z) => (float[2] y) {\n  y = Relu(x)\n}"),
    _broken("completeness", SONNX, "C3", "the output y waits for a value that never comes",
        "g (float[2] x) => (float[2] y) {\n  a = Add(x, b)\n  b = Relu(a)\n  y = Neg(b)\n}"),
    _broken("output-usage", MAY, "R1/per-output", "the Indices of MaxPool go nowhere",
        'g (float[1,1,4,4] x) => (float[1,1,2,2] y) {\n'
        '  y, i = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x)\n}'),
    _broken("dead-node", SONNX, "R1/per-node", "nothing reads the Neg",
        "g (float[2] x) => (float[2] y) {\n  y = Relu(x)\n  z = Neg(x)\n}"),
    _broken("random", SONNX, "R2", "RandomNormalLike is not deterministic",
        "g (float[2] x) => (float[2] y) {\n  r = RandomNormalLike(x)\n  y = Add(x, r)\n}"),
    _broken("dropout-training", SONNX, "R2", "Dropout in training mode is not deterministic",
        "g (float[2] x) => (float[2] y) <bool training = {1}> {\n  y = Dropout(x, , training)\n}"),
    _broken("branches-disagree", SONNX, "If/branches", "the branches of If give values of different types",
        "g (bool c, float[2] x) => (float[2] y) {\n"
        "  y = If(c)<then_branch = a () => (float[2] p) { p = Relu(x) },\n"
        "            else_branch = b () => (double[2] q) { q = Cast<to = 11>(x) }>\n}"),
    _broken("branches-short", SONNX, "If/branches", "an If has two outputs, its branches give one each",
        "g (bool c, float[2] x) => (float[2] y, float[2] z) {\n"
        "  y, z = If(c)<then_branch = a () => (float[2] p) { p = Relu(x) },\n"
        "               else_branch = b () => (float[2] q) { q = Neg(x) }>\n}"),
    _broken("cycle", SONNX, "Acyclic", "two nodes wait for each other, off the path to the output",
        "g (float[2] x) => (float[2] y) {\n  y = Relu(x)\n  a = Neg(b)\n  b = Neg(a)\n}"),
    _broken("no-source", SONNX, "Sourced", "nothing writes z",
        "g (float[2] x) => (float[2] y) {\n  y = Add(x, z)\n}"),
    _broken("write-to-input", SONNX, "NoWriteToInput", "a node writes the input z",
        "g (float[2] x, float[2] z) => (float[2] y) {\n  z = Relu(x)\n  y = Neg(z)\n}"),
    _broken("write-to-initializer", SONNX, "NoWriteToInitializer", "a node writes the initializer w",
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {\n  w = Relu(x)\n  y = Neg(w)\n}"),
    _broken("unique-names", SONNX, "UniqueNames", "x is listed twice as an input",
        "g (float[2] x, float[2] x) => (float[2] y) {\n  y = Relu(x)\n}"),
    _broken("output-positions", SONNX, "OutputPositions", "a node lists y at both output positions",
        "g (float[4] x) => (float[2] y) {\n  y, y = Split<axis = 0, num_outputs = 2>(x)\n}"),
    _broken("function-resolution", SONNX, "FunctionResolution", "the model defines local.other, not local.scale",
        'g (float[2] x) => (float[2] y) {\n  y = local.scale(x)\n}\n'
        '<domain: "local", opset_import: ["" : 21]>\nother (a) => (b) {\n  b = Relu(a)\n}',
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>'),
    _broken("unique-functions", SONNX, "UniqueFunctions", "local.scale is defined twice",
        'g (float[2] x) => (float[2] y) {\n  y = local.scale(x)\n}\n'
        '<domain: "local", opset_import: ["" : 21]>\nscale (a) => (b) {\n  b = Relu(a)\n}\n'
        '<domain: "local", opset_import: ["" : 21]>\nscale (a) => (b) {\n  b = Neg(a)\n}',
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>'),
    _broken("hidden-name", SONNX, "UniqueNames/bodies", "a body writes h, which is visible in it",
        "g (bool c, float[2] x) => (float[2] y) {\n  h = Relu(x)\n"
        "  y = If(c)<then_branch = a () => (float[2] p) { h = Neg(x) p = Abs(h) },\n"
        "            else_branch = b () => (float[2] q) { q = Neg(h) }>\n}"),
    _broken("missing-branch", SONNX, "Bodies/present", "the If has one branch",
        "g (bool c, float[2] x) => (float[2] y) {\n"
        "  y = If(c)<then_branch = a () => (float[2] p) { p = Relu(x) }>\n}"),
    _broken("loop-outputs", SONNX, "Bodies/arity", "the Loop has an output that its body does not give",
        "g (int64 m, bool c, float[2] x) => (float[2] y, float[k,2] z) {\n"
        "  y, z = Loop(m, c, x)<body = b (int64 i, bool go, float[2] v) => (bool on, float[2] w) {\n"
        "    on = Identity(go)\n    w = Neg(v)\n  }>\n}"),
    _broken("loop-input-type", SONNX, "Bodies/inputs", "the body of the Loop takes integers and is given floats",
        "g (int64 m, bool c, float[2] x) => (float[2] y) {\n"
        "  y = Loop(m, c, x)<body = b (int64 i, bool go, int64[2] v) => (bool on, int64[2] w) {\n"
        "    on = Identity(go)\n    w = Neg(v)\n  }>\n}"),
    _broken("loop-output-type", SONNX, "Bodies/outputs", "the body of the Loop takes floats and gives doubles",
        "g (int64 m, bool c, float[2] x) => (float[2] y) {\n"
        "  y = Loop(m, c, x)<body = b (int64 i, bool go, float[2] v) => (bool on, double[2] w) {\n"
        "    on = Identity(go)\n    w = Cast<to = 11>(v)\n  }>\n}"),
    _broken("scan-directions", SONNX, "Bodies/lists", "the Scan states two directions for one sequence",
        "g (float[5,2] x) => (float[5,2] y) {\n"
        "  y = Scan<num_scan_inputs = 1, scan_input_directions = [0, 1],\n"
        "    body = b (float[2] row) => (float[2] out) { out = Neg(row) }>(x)\n}"),
    _broken("matrix-sizes", DOMAIN, "MatMul-1/inner_dimensions", "the factors of MatMul do not fit together",
        "g (float[2,3] x, float[4,5] w) => (float[2,5] y) {\n  y = MatMul(x, w)\n}"),
    _broken("two-types", ONNX, "type/variable", "Add of floats and integers",
        "g (float[2] x, int64[2] n) => (float[2] y) {\n  y = Add(x, n)\n}"),
    _broken("unknown-attribute", ONNX, "attribute/known", "Relu has no alpha",
        "g (float[2] x) => (float[2] y) {\n  y = Relu<alpha = 0.1>(x)\n}"),
    _broken("too-many-inputs", ONNX, "arity", "Relu has one input",
        "g (float[2] x, float[2] z) => (float[2] y) {\n  y = Relu(x, z)\n}"),
    _broken("no-output", APRIL, "Graph/outputs", "the graph has no output",
        "g (float[2] x) => () {\n  y = Relu(x)\n}"),
    _broken("node-without-output", APRIL, "C4", "the Relu has no output",
        "g (float[2] x) => (float[2] y) {\n  y = Neg(x)\n   = Relu(x)\n}"),
    _broken("input-is-output", APRIL, "C2", "the graph hands its input x through",
        "g (float[2] x) => (float[2] y, float[2] x) {\n  y = Relu(x)\n}"),
    _broken("dead-chain", OCTOBER, "R2", "the Neg is read by a node which is dead itself",
        "g (float[2] x) => (float[2] y) {\n  y = Relu(x)\n  a = Neg(x)\n  b = Abs(a)\n}"),
    _broken("missing-input", OCTOBER, "R1/required", "Add leaves its first input empty",
        "g (float[2] x) => (float[2] y) {\n  y = Add( , x)\n}"),
    _broken("extra-output", OCTOBER, "R1/counts", "Relu has two outputs",
        "g (float[2] x) => (float[2] y, float[2] z) {\n  y, z = Relu(x)\n}"),
    _broken("constant-ancestor", OCTOBER, "RX/path", "a constant lies on no path from an input: the rule is defective",
        "g (float[2] x) => (float[2] y) {\n  c = Constant<value = float[2] {1, 2}>()\n  y = Add(x, c)\n}"),
    _broken("omitted-input", OCTOBER, "Rx/edges", "Clip leaves out min and max",
        "g (float[2] x) => (float[2] y) {\n  y = Clip(x)\n}"),
    _broken("outside-subset", OCTOBER, "R3", "AveragePool is not in the SONNX subset",
        "g (float[1,1,4,4] x) => (float[1,1,3,3] y) {\n  y = AveragePool<kernel_shape = [2,2]>(x)\n}"),
)  # fmt: skip
