"""Random applications of operators of ai.onnx.ml, as converters of scikit-learn write them, and odder ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Case = tuple[list[Array], dict[str, Any]]
"""The inputs and the attributes."""
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
    return tuple(int(rng.integers(0, 5)) for _ in range(rank - 1)) + tuple(int(rng.integers(1, 6)) for _ in range(min(rank, 1)))


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
        return [table(rng, shape, dtype)], {"imputed_value_int64s": values, "replaced_value_int64": int(rng.integers(-3, 4))}
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
