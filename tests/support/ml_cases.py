"""Random applications of operators of ai.onnx.ml, as converters of scikit-learn write them, and odder ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

Array = NDArray[Any]
Case = tuple[list[Array], dict[str, Any]]
"""The inputs and the attributes."""


def stated(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes as an operator's text sees them."""

    def value(it: Any) -> Any:
        return tuple(it) if isinstance(it, list) else numpy_helper.to_array(it) if isinstance(it, TensorProto) else it

    return {name: value(it) for name, it in attributes.items()}


NUMBERS = (np.float32, np.float64, np.int64, np.int32)
ODD = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, 1.0, -1.0)


def table(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, odd: bool = True) -> Array:
    """Numbers of a type; floats now and then with zeros, infinities and NaN among them."""
    if np.dtype(dtype).kind == "i":
        return rng.integers(-4, 5, shape).astype(dtype)
    found = np.asarray(rng.normal(size=shape) * rng.choice([1e-3, 1, 50])).astype(dtype)
    if odd and rng.random() < 0.25:
        found = np.where(rng.random(shape) < 0.3, rng.choice(ODD, shape), found).astype(dtype)
    return found


def sizes(rng: np.random.Generator, *, ranks: tuple[int, ...] = (1, 2, 2)) -> tuple[int, ...]:
    """A shape: rows, of which there may be none, and columns."""
    rank = int(rng.choice(ranks))
    return tuple(int(rng.integers(0, 5)) for _ in range(rank - 1)) + tuple(
        int(rng.integers(1, 6)) for _ in range(min(rank, 1))
    )


def floats(rng: np.random.Generator, count: int, scale: float = 1.0) -> list[float]:
    """As many numbers of type float."""
    return [float(np.float32(x)) for x in rng.normal(size=count) * scale]


def scaler(rng: np.random.Generator) -> Case:
    """Standardized columns, one number for all or one for each."""
    shape = sizes(rng)
    count = int(rng.choice([1, shape[-1]]))
    return [table(rng, shape, rng.choice(NUMBERS))], {"offset": floats(rng, count), "scale": floats(rng, count)}


def normalizer(rng: np.random.Generator) -> Case:
    """Rows, now and then of zeros."""
    shape = sizes(rng)
    x = table(rng, shape, rng.choice(NUMBERS), odd=False)
    if rng.random() < 0.2:
        x[:1] = 0
    return [x], {"norm": str(rng.choice(["MAX", "L1", "L2"]))}


def binarizer(rng: np.random.Generator) -> Case:
    """Elements around the threshold."""
    x = table(rng, sizes(rng, ranks=(0, 1, 2, 3)), rng.choice(NUMBERS))
    return [x], {} if rng.random() < 0.2 else {"threshold": floats(rng, 1)[0]}


def imputer(rng: np.random.Generator) -> Case:
    """Missing values as NaN, or as a number."""
    shape = sizes(rng, ranks=(1, 2, 2, 3))
    dtype = rng.choice(NUMBERS)
    count = int(rng.choice([1, shape[-1]]))
    if np.dtype(dtype).kind == "i":
        values = [int(v) for v in rng.integers(-9, 9, count)]
        return [table(rng, shape, dtype)], {
            "imputed_value_int64s": values,
            "replaced_value_int64": int(rng.integers(-3, 4)),
        }
    replaced = float(rng.choice([np.nan, 0.0, -0.0, 1.5]))
    x = np.where(rng.random(shape) < 0.4, replaced, table(rng, shape, dtype)).astype(dtype)
    return [x], {"imputed_value_floats": floats(rng, count), "replaced_value_float": replaced}


def extractor(rng: np.random.Generator) -> Case:
    """Columns by position."""
    shape = sizes(rng, ranks=(1, 2, 2, 3))
    x = table(rng, shape, rng.choice(NUMBERS))
    if rng.random() < 0.2:
        x = np.vectorize(str, otypes=[object])(x) if x.size else x.astype(object)
    count = tuple(int(k) for k in rng.integers(1, 4, int(rng.choice([0, 1, 1, 2]))))
    return [x, np.asarray(rng.integers(0, shape[-1], count), np.int64)], {}


def vectorizer(rng: np.random.Generator) -> Case:
    """Tables, or rows, side by side."""
    rows = int(rng.integers(1, 5))
    flat = rng.random() < 0.2
    widths = [int(w) for w in rng.integers(1, 5, rng.integers(1, 5))]
    dtype = rng.choice(NUMBERS)
    shapes = [(w,) if flat else (rows, w) for w in widths]
    return [table(rng, shape, dtype) for shape in shapes], {"inputdimensions": widths}


def encoder(rng: np.random.Generator) -> Case:
    """Categories, now and then none of them."""
    shape = sizes(rng, ranks=(1, 1, 2, 3))
    zeros = {} if rng.random() < 0.7 else {"zeros": int(rng.integers(0, 2))}
    if rng.random() < 0.3:
        words = [str(w) for w in rng.permutation(["a", "bb", "", "\u00e9", "A"])[: rng.integers(1, 6)]]
        return [np.asarray(rng.choice(["a", "bb", "", "\u00e9", "z"], shape), object)], {"cats_strings": words, **zeros}
    numbers = [int(v) for v in rng.permutation(np.arange(-4, 5))[: rng.integers(1, 10)]]
    return [table(rng, shape, rng.choice(NUMBERS), odd=False)], {"cats_int64s": numbers, **zeros}


FEATURES: Mapping[tuple[str, int], Callable[[np.random.Generator], Case]] = {
    ("Scaler", 1): scaler,
    ("Normalizer", 1): normalizer,
    ("Binarizer", 1): binarizer,
    ("Imputer", 1): imputer,
    ("ArrayFeatureExtractor", 1): extractor,
    ("FeatureVectorizer", 1): vectorizer,
    ("OneHotEncoder", 1): encoder,
}
"""By operator and version what makes a case."""


def cases(make: Callable[[np.random.Generator], Case], count: int, first: int = 0) -> Iterator[Case]:
    """So many cases, from a seed on."""
    return (make(np.random.default_rng(first + seed)) for seed in range(count))


TRANSFORMS = ("NONE", "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def labels(rng: np.random.Generator, count: int, name: str = "classlabels_ints") -> dict[str, Any]:
    """So many labels, numbers or texts."""
    if rng.random() < 0.4:
        return {"classlabels_strings": [f"c{int(k)}" for k in rng.permutation(count)]}
    return {name: [int(k) for k in rng.permutation(count * 2)[:count]]}


def linear_regressor(rng: np.random.Generator) -> Case:
    """As LinearRegression, Ridge and their kin are written; one target or more, with a transform now and then."""
    shape = sizes(rng)
    targets = int(rng.choice([1, 1, 2, 3]))
    attributes: dict[str, Any] = {"coefficients": floats(rng, targets * shape[-1]), "targets": targets}
    if rng.random() < 0.8:
        attributes["intercepts"] = floats(rng, targets)
    attributes["post_transform"] = str(rng.choice(TRANSFORMS)) if targets > 1 else "NONE"
    return [table(rng, shape, np.float32)], attributes


def linear_classifier(rng: np.random.Generator) -> Case:
    """As LogisticRegression is written: a score for each class, or one score for two classes."""
    shape = sizes(rng)
    classes = int(rng.choice([2, 3, 4]))
    scores = 1 if classes == 2 and rng.random() < 0.5 else classes
    transform = str(rng.choice(TRANSFORMS)) if scores > 1 else str(rng.choice(["NONE", "LOGISTIC"]))
    attributes = {
        "coefficients": floats(rng, scores * shape[-1]),
        "intercepts": floats(rng, scores),
        "post_transform": transform,
        "multi_class": int(rng.integers(0, 2)),
        **labels(rng, classes),
    }
    return [table(rng, shape, rng.choice(NUMBERS), odd=False)], attributes


LINEAR: Mapping[tuple[str, int], Callable[[np.random.Generator], Case]] = {
    ("LinearRegressor", 1): linear_regressor,
    ("LinearClassifier", 1): linear_classifier,
}


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def trees(
    rng: np.random.Generator, columns: int, outputs: int, depth: int, mixed: bool
) -> tuple[dict[str, Any], list[Any]]:
    """The nodes of some trees, as converters write them, and for each leaf its tree, node and weights."""
    nodes: dict[str, list[Any]] = {
        f"nodes_{name}": []
        for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    }
    leaves: list[Any] = []
    for tree in range(int(rng.integers(1, 6))):
        count = 0

        def grow(left: int, tree: int = tree) -> int:
            nonlocal count
            own, at = count, len(nodes["nodes_treeids"])
            count += 1
            is_leaf = left == 0 or rng.random() < 0.2
            mode = str(rng.choice(MODES)) if mixed else "BRANCH_LEQ"
            entry = (tree, own, 0 if is_leaf else int(rng.integers(columns)), 0.0 if is_leaf else floats(rng, 1)[0])
            for name, item in zip(nodes, (*entry, "LEAF" if is_leaf else mode, 0, 0), strict=True):
                nodes[name].append(item)
            if is_leaf:
                leaves.append((tree, own, [abs(w) if outputs < 0 else w for w in floats(rng, abs(outputs))]))
            else:
                nodes["nodes_truenodeids"][at] = grow(left - 1)
                nodes["nodes_falsenodeids"][at] = grow(left - 1)
            return own

        grow(depth)
    return nodes, leaves


def votes(leaves: list[Any], prefix: str) -> dict[str, list[Any]]:
    """The weights of leaves."""
    rows = [(tree, node, k, w) for tree, node, weights in leaves for k, w in enumerate(weights)]
    names = ("treeids", "nodeids", "ids", "weights")
    return {f"{prefix}_{name}": [row[k] for row in rows] for k, name in enumerate(names)}


def tree_input(rng: np.random.Generator, rows: int, columns: int, nodes: dict[str, Any], dtype: Any) -> Array:
    """Rows, some of whose elements are the value of a node, some NaN."""
    x = table(rng, (rows, columns), dtype, odd=False)
    if np.dtype(dtype).kind == "f":
        x = np.where(rng.random(x.shape) < 0.2, rng.choice(nodes["nodes_values"], x.shape), x).astype(dtype)
        if rng.random() < 0.2:
            x = np.where(rng.random(x.shape) < 0.2, rng.choice([np.nan, np.inf, -np.inf], x.shape), x).astype(dtype)
    return x


def as_tensors(attributes: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The attributes with some as tensors of doubles."""
    made = {
        f"{name}_as_tensor": numpy_helper.from_array(np.asarray(attributes[name], np.float64) * 1.1, name)
        for name in names
        if name in attributes
    }
    return {name: value for name, value in attributes.items() if name not in names} | made


def tree_regressor(version: int) -> Callable[[np.random.Generator], Case]:
    """As DecisionTreeRegressor, RandomForestRegressor and gradient boosting are written."""

    def make(rng: np.random.Generator) -> Case:
        columns, targets = int(rng.integers(1, 5)), int(rng.choice([1, 1, 2, 3]))
        nodes, leaves = trees(rng, columns, targets, int(rng.integers(0, 5)), mixed=rng.random() < 0.3)
        attributes = {**nodes, **votes(leaves, "target"), "n_targets": targets}
        attributes["aggregate_function"] = str(rng.choice(["SUM", "SUM", "AVERAGE", "MIN", "MAX"]))
        if rng.random() < 0.5:
            attributes["base_values"] = floats(rng, targets)
        if targets > 1:
            attributes["post_transform"] = str(rng.choice(TRANSFORMS))
        if rng.random() < 0.3:
            attributes["nodes_missing_value_tracks_true"] = [
                int(k) for k in rng.integers(0, 2, len(nodes["nodes_modes"]))
            ]
        dtype = rng.choice([np.float32, np.float64])
        x = tree_input(rng, int(rng.integers(0, 6)), columns, nodes, dtype)
        if version == 3 and dtype == np.float64 and rng.random() < 0.7:
            attributes = as_tensors(attributes, ("nodes_values", "target_weights", "base_values"))
        return [x], attributes

    return make


def tree_classifier(version: int) -> Callable[[np.random.Generator], Case]:
    """As DecisionTreeClassifier, RandomForestClassifier and gradient boosting are written."""

    def make(rng: np.random.Generator) -> Case:
        columns, classes = int(rng.integers(1, 5)), int(rng.choice([2, 2, 3, 4]))
        alone = classes == 2 and rng.random() < 0.7
        positive = bool(rng.random() < 0.5)
        count = -1 if alone and positive else 1 if alone else classes
        nodes, leaves = trees(rng, columns, count, int(rng.integers(0, 5)), mixed=rng.random() < 0.3)
        attributes = {**nodes, **votes(leaves, "class"), **labels(rng, classes, "classlabels_int64s")}
        if alone:
            attributes["post_transform"] = "NONE" if min(attributes["class_weights"]) >= 0 else "LOGISTIC"
        else:
            attributes["post_transform"] = str(rng.choice(TRANSFORMS))
            if rng.random() < 0.3:
                attributes["base_values"] = floats(rng, classes)
        if rng.random() < 0.3:
            attributes["nodes_missing_value_tracks_true"] = [
                int(k) for k in rng.integers(0, 2, len(nodes["nodes_modes"]))
            ]
        dtype = rng.choice(NUMBERS)
        x = tree_input(rng, int(rng.integers(0, 6)), columns, nodes, dtype)
        if version == 3 and dtype == np.float64 and rng.random() < 0.7:
            attributes = as_tensors(attributes, ("nodes_values", "class_weights", "base_values"))
        return [x], attributes

    return make


def grown(rng: np.random.Generator, columns: int, mixed: bool) -> tuple[dict[str, list[Any]], int]:
    """The nodes of some trees whose leaves are listed apart, and the number of leaves.

    A node has a list of members instead of a split in mode 6.
    """
    names = ("featureids", "modes", "splits", "members", "truenodeids", "trueleafs", "falsenodeids", "falseleafs")
    nodes: dict[str, list[Any]] = {"roots": [], **{name: [] for name in names}}
    leaves = 0

    def grow(left: int) -> int:
        nonlocal leaves
        at = len(nodes["modes"])
        mode = int(rng.integers(0, 7)) if mixed else 0
        members = [float(k) for k in rng.integers(-3, 4, rng.integers(1, 4))] if mode == 6 else []
        for name, item in zip(names, (int(rng.integers(columns)), mode, *floats(rng, 1), members), strict=False):
            nodes[name].append(item)
        for side in ("true", "false"):
            nodes[f"{side}nodeids"].append(0)
            nodes[f"{side}leafs"].append(0)
        for side in ("true", "false"):
            is_leaf = left == 0 or rng.random() < 0.3
            nodes[f"{side}leafs"][at] = int(is_leaf)
            if is_leaf:
                nodes[f"{side}nodeids"][at] = leaves
                leaves += 1
            else:
                nodes[f"{side}nodeids"][at] = grow(left - 1)
        return at

    for _ in range(int(rng.integers(1, 5))):
        nodes["roots"].append(grow(int(rng.integers(0, 4))))
    return nodes, leaves


def tree_ensemble(rng: np.random.Generator) -> Case:
    """As forests are written since version 5: leaves apart, splits as tensors, sets of members."""
    dtype = rng.choice([np.float32, np.float64])
    columns, targets = int(rng.integers(1, 5)), int(rng.choice([1, 1, 2, 3]))
    nodes, leaves = grown(rng, columns, mixed=rng.random() < 0.5)
    sets = [members for members in nodes["members"] if members]
    attributes: dict[str, Any] = {
        "tree_roots": nodes["roots"],
        "n_targets": targets,
        "aggregate_function": int(rng.choice([0, 1, 1, 2, 3])),
        "leaf_targetids": [int(k) for k in rng.integers(0, targets, leaves)],
        "leaf_weights": numpy_helper.from_array(rng.normal(size=leaves).astype(dtype)),
        "nodes_modes": numpy_helper.from_array(np.array(nodes["modes"], np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array(nodes["splits"], dtype)),
    }
    attributes |= {f"nodes_{name}": nodes[name] for name in nodes if name.endswith(("ids", "leafs"))}
    if sets:
        listed = [x for members in sets for x in (*members, np.nan)][: None if rng.random() < 0.5 else -1]
        attributes["membership_values"] = numpy_helper.from_array(np.array(listed, dtype))
    if targets > 1:
        attributes["post_transform"] = int(rng.choice([0, 0, 1, 2, 3, 4]))
    if rng.random() < 0.3:
        attributes["nodes_missing_value_tracks_true"] = [int(k) for k in rng.integers(0, 2, len(nodes["modes"]))]
    x = tree_input(rng, int(rng.integers(0, 6)), columns, {"nodes_values": nodes["splits"]}, dtype)
    often = 0.4 if not sets or rng.random() < 0.3 else 1
    return [np.where(rng.random(x.shape) < often, rng.integers(-3, 4, x.shape), x).astype(dtype)], attributes


TREES: Mapping[tuple[str, int], Callable[[np.random.Generator], Case]] = {
    ("TreeEnsembleClassifier", 1): tree_classifier(1),
    ("TreeEnsembleClassifier", 3): tree_classifier(3),
    ("TreeEnsembleRegressor", 1): tree_regressor(1),
    ("TreeEnsembleRegressor", 3): tree_regressor(3),
    ("TreeEnsemble", 5): tree_ensemble,
}


KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def kernel(rng: np.random.Generator) -> dict[str, Any]:
    """A kernel and its parameters."""
    name = str(rng.choice(KERNELS))
    params = [abs(floats(rng, 1)[0]), floats(rng, 1)[0], float(rng.integers(1, 5))]
    return {"kernel_type": name, "kernel_params": params}


def support_regressor(rng: np.random.Generator) -> Case:
    """As SVR and OneClassSVM are written, now and then without support vectors."""
    rows, columns = int(rng.integers(0, 5)), int(rng.integers(1, 6))
    vectors = int(rng.choice([0, 1, 3, 7]))
    attributes: dict[str, Any] = {"n_supports": vectors, "rho": floats(rng, 1), "one_class": int(rng.integers(0, 2))}
    attributes |= {"coefficients": floats(rng, vectors or columns), **kernel(rng)}
    if vectors:
        attributes["support_vectors"] = floats(rng, vectors * columns)
    else:
        attributes["kernel_type"] = "LINEAR"
    return [table(rng, (rows, columns), np.float32, odd=False)], attributes


def support_classifier(rng: np.random.Generator) -> Case:
    """As SVC and NuSVC are written, with probabilities now and then, and now and then without support vectors."""
    rows, columns, classes = int(rng.integers(0, 5)), int(rng.integers(1, 6)), int(rng.choice([2, 2, 3, 4]))
    counts = [int(k) for k in rng.integers(0, 4, classes)] if rng.random() < 0.8 else [0] * classes
    vectors, pairs = sum(counts), classes * (classes - 1) // 2
    attributes: dict[str, Any] = {**kernel(rng), **labels(rng, classes), "vectors_per_class": counts}
    likely = vectors > 0 and rng.random() < 0.5
    attributes["post_transform"] = str(
        rng.choice(TRANSFORMS if vectors == 0 or classes > 2 or likely else TRANSFORMS[:5])
    )
    if vectors:
        attributes |= {"coefficients": floats(rng, (classes - 1) * vectors), "rho": floats(rng, pairs)}
        attributes["support_vectors"] = floats(rng, vectors * columns)
        if likely:
            attributes |= {"prob_a": [-abs(a) for a in floats(rng, pairs)], "prob_b": floats(rng, pairs)}
    else:
        attributes |= {"coefficients": floats(rng, classes * columns), "rho": floats(rng, 1), "kernel_type": "LINEAR"}
    x = table(rng, (rows, columns), rng.choice(NUMBERS), odd=False)
    return [x if vectors else np.where(x == 0, 1, x).astype(x.dtype)], attributes  # 0 has equal scores for all classes


VECTORS: Mapping[tuple[str, int], Callable[[np.random.Generator], Case]] = {
    ("SVMClassifier", 1): support_classifier,
    ("SVMRegressor", 1): support_regressor,
}


def hurt(rng: np.random.Generator, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes with a few changed: an element of a list or of a tensor, a length, a number of axes, a word."""
    changed = dict(attributes)
    for _ in range(int(rng.integers(1, 4))):
        name = str(rng.choice(sorted(changed)))
        changed[name] = _hurt(rng, changed[name])
        if len(changed) > 1 and rng.random() < 0.1:
            del changed[name]
    return changed


def _hurt(rng: np.random.Generator, value: Any) -> Any:
    if isinstance(value, TensorProto):
        old = numpy_helper.to_array(value).copy()
        if old.size and old.dtype != object and rng.random() < 0.6:
            old.flat[int(rng.integers(old.size))] = rng.choice([0, 1, 6, 7, 99])
            return numpy_helper.from_array(old)
        return numpy_helper.from_array(old[:-1] if old.ndim and rng.random() < 0.5 else old.reshape(1, -1))
    if isinstance(value, list) and value and not isinstance(value[0], str) and rng.random() < 0.7:
        choices = ODD if isinstance(value[0], float) else (-(2**63), -1, 0, 1, 2, 3, 5, 99, 2**62)
        at = int(rng.integers(len(value)))
        return [*value[:at], type(value[0])(rng.choice(choices)), *value[at + 1 :]]
    if isinstance(value, list):
        return value[:-1] if rng.random() < 0.5 else [*value, *value[:1]]
    if isinstance(value, str):
        return "OTHER"
    return type(value)(rng.choice([-(2**31), -1, 0, 1, 2, 9]))
