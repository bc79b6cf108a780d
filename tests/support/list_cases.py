"""Random applications of operators on strings, sequences and values that occur once, against onnxruntime."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from microsoft_cases import Attributes, Case, outcomes_of, shape
from onnx import helper
from sonnx.semantics.machine.judging import Standing, Undefined, applied, judge
from sonnx.semantics.model.elements import element_of
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Sequence as Items
from sonnx.semantics.operators.application import Application

LETTERS = "ab,; é日AÉ1_-.\t\n"
PIECES = [
    *("a", "b", "é", "日", ".", "*", "+", "?", "|", "(", ")", "(?:", "[", "]", "^", "$", "-", "{2}", "{1,3}", "{,2}"),
    *("{2,}", "{0}", r"\d", r"\w", r"\s", r"\W", r"\S", r"\D", r"\b", r"\B", r"\A", r"\z", r"\n", r"\.", r"\-", r"\_"),
    *("[a-c]", "[^a]", r"[\w.-]", r"[^\W\d]", "*?", " ", "{30}", "{1000}", r"[a\]-b]", "[]a]", r"\q", "(a|b)*", "é+"),
]
NUMBERS = (np.float32, np.int64, np.float64, np.int8)


def _word(rng: random.Random, letters: str = LETTERS, most: int = 6) -> str:
    return "".join(rng.choice(letters) for _ in range(rng.randint(0, most)))


def _words(rng: random.Random, whole: Sequence[int], letters: str = LETTERS) -> Any:
    made = np.empty(whole, object)
    made.reshape(-1)[:] = [_word(rng, letters).encode() for _ in range(made.size)]
    return made


def _few(rng: random.Random, whole: Sequence[int], kind: Any) -> Any:
    """Elements many of which are equal, zeros of both signs among them."""
    if kind is object:
        return _words(rng, whole, "ab")
    values = [rng.choice([0.0, -0.0, 1.0, -2.0, 3.0]) for _ in range(int(np.prod(whole)))]
    return np.array(values).astype(kind).reshape(whole)


def _concat(rng: random.Random) -> Case:
    whole = shape(rng)
    parts = [[1 if rng.random() < 0.25 else size for size in whole] for _ in range(2)]
    return tuple(_words(rng, part) for part in parts), {}, 1


def _split_words(rng: random.Random) -> Case:
    attributes: dict[str, Any] = {}
    if rng.random() < 0.7:
        attributes["delimiter"] = rng.choice(["", ",", ";", " ", "é", "a", ",;", "ab"])
    if rng.random() < 0.4:
        attributes["maxsplit"] = rng.randint(0, 3)
    return (_words(rng, shape(rng, 0, 3), rng.choice([LETTERS, "a,; ", "ab ,"])),), attributes, 2


def _normalize(rng: random.Random) -> Case:
    letters = rng.choice(["aAbB", "aAéÉ日ß"])
    row = [rng.randint(1, 6)]
    attributes: dict[str, Any] = {"case_change_action": rng.choice(["NONE", "LOWER", "UPPER"])}
    attributes["is_case_sensitive"] = rng.randint(0, 1)
    if rng.random() < 0.7:
        attributes["stopwords"] = tuple(_word(rng, letters, 2) or "a" for _ in range(rng.randint(1, 4)))
    return (_words(rng, row if rng.random() < 0.5 else [1, *row], letters),), attributes, 1


def _match(rng: random.Random) -> Case:
    pattern = "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 5)))
    return (_words(rng, shape(rng, 1, 2), rng.choice([LETTERS, "ab", "aé1 "])),), {"pattern": pattern}, 1


def _unique(rng: random.Random) -> Case:
    whole = shape(rng, 1, 3)
    attributes: dict[str, Any] = {"sorted": rng.randint(0, 1)}
    if rng.random() < 0.6:
        attributes["axis"] = rng.randint(-len(whole), len(whole) - 1)
    return (_few(rng, whole, rng.choice([object, *NUMBERS])),), attributes, 4


def _ngrams(rng: random.Random) -> Case:
    kind = rng.choice([object, np.int64, np.int32])
    lengths = [rng.randint(1, 3), *(rng.randint(0, 3) for _ in range(rng.randint(0, 2)))]
    pool = list(_few(rng, [sum(k * (g + 1) for g, k in enumerate(lengths))], kind if kind is object else np.int64))
    starts = [sum(k * (h + 1) for h, k in enumerate(lengths[:g])) for g in range(len(lengths))]
    places = list(range(sum(lengths)))
    rng.shuffle(places)
    least = rng.randint(1, len(lengths))
    attributes: dict[str, Any] = {
        "mode": rng.choice(["TF", "IDF", "TFIDF"]), "min_gram_length": least, "ngram_counts": tuple(starts),
        "max_gram_length": rng.randint(least, len(lengths)), "max_skip_count": rng.randint(0, 3),
        "ngram_indexes": tuple(places),
    }  # fmt: skip
    name = "pool_strings" if kind is object else "pool_int64s"
    attributes[name] = tuple(it.decode() if kind is object else int(it) for it in pool)
    if rng.random() < 0.5:
        attributes["weights"] = tuple(rng.choice([0.5, 1.0, 2.0]) for _ in places)
    whole = [rng.randint(0, 7)] if rng.random() < 0.5 else [rng.randint(1, 3), rng.randint(1, 6)]
    return (_few(rng, whole, kind),), attributes, 1


def _parts(rng: random.Random, size: int) -> list[int]:
    cuts = sorted(rng.randint(0, size) for _ in range(rng.randint(0, 3)))
    return [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]


def _to_sequence(rng: random.Random) -> Case:
    whole = shape(rng, 1)
    axis = rng.randint(-len(whole), len(whole) - 1)
    attributes: dict[str, Any] = {"axis": axis} if rng.random() < 0.8 or axis else {}
    x = _few(rng, whole, rng.choice([object, np.float32, np.int64, np.float64]))
    how, kind = rng.randint(0, 2), rng.choice([np.int64, np.int32])
    if how == 0:
        return (x,), attributes | rng.choice([{}, {"keepdims": rng.randint(0, 1)}]), 1
    split = rng.randint(1, 3) if how == 1 else _parts(rng, whole[axis])
    return (x, np.array(split, kind)), attributes, 1


def _from_sequence(rng: random.Random) -> Case:
    whole, kind = shape(rng, 1), rng.choice([object, np.float32, np.int64])
    new = rng.randint(0, 1)
    axis = rng.randint(-len(whole) - new, len(whole) - 1 + new)
    entries = []
    for _ in range(rng.randint(1, 4)):
        own = list(whole)
        if not new:
            own[axis] = rng.randint(0, 3)
        entries.append(_few(rng, own, kind))
    return (
        (Items(ValueType("tensor", element_of(entries[0].dtype)), tuple(entries)),),
        {"axis": axis, "new_axis": new},
        1,
    )


KINDS = (*NUMBERS, np.float16, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.uint64)
"""Element types that NumPy has, of numbers."""
WORDS = ("INF", "+INF", "-INF", "NaN", "inf", "-Inf", "nan", "NAN")


def _numeral(rng: random.Random, whole: bool) -> bytes:
    """A string that spells a number; hardly ever one that spells none."""
    sign, digits = rng.choice(["", "", "-", "+"]), str(rng.randrange(10 ** rng.randint(1, 21)))
    if rng.random() < 0.02:
        return rng.choice([b"", b"abc", b" 1", b"1 ", b"0x1F", b"2.5.", b"1e", b"--1", "١".encode(), b"1_0"])
    if whole:
        return f"{sign}{'0' * rng.choice([0, 0, 2])}{digits}".encode()
    if rng.random() < 0.15:
        return rng.choice(WORDS).encode()
    point = rng.randint(0, len(digits))
    number = digits if rng.random() < 0.3 else f"{digits[:point]}.{digits[point:]}"
    exponent = f"{rng.choice('eE')}{rng.randint(-30, 30)}" if rng.random() < 0.4 else ""
    if rng.random() < 0.03:
        exponent = rng.choice(["e400", "e-400", "e99999999999999999999"])
    return f"{sign}{number}{exponent}".encode()


def _number(rng: random.Random, kind: Any) -> Any:
    if np.issubdtype(kind, np.integer):
        info = np.iinfo(kind)
        return rng.choice([info.min, 0, info.max, rng.randint(info.min, info.max), rng.randint(0, 99)])
    value = rng.choice([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, rng.gauss(0, 1), rng.gauss(0, 1)])
    return kind(value * 10.0 ** rng.choice([0, 0, rng.randint(-3, 3)]))


def _spelled(rng: random.Random) -> Case:
    """Strings to numbers, or numbers to strings."""
    kind, size = rng.choice(KINDS), rng.randint(0, 4)
    if rng.random() < 0.4:
        return (np.array([_number(rng, kind) for _ in range(size)], kind),), {"to": onnx.TensorProto.STRING}, 1
    texts = np.empty(size, object)
    texts[:] = [_numeral(rng, np.issubdtype(kind, np.integer)) for _ in range(size)]
    return (texts,), {"to": helper.np_dtype_to_tensor_dtype(np.dtype(kind))}, 1


CASES: Mapping[tuple[str, int], Callable[[random.Random], Case]] = {
    ("StringConcat", 20): _concat,
    ("StringSplit", 20): _split_words,
    ("StringNormalizer", 10): _normalize,
    ("RegexFullMatch", 20): _match,
    ("TfIdfVectorizer", 9): _ngrams,
    ("Unique", 11): _unique,
    ("SplitToSequence", 11): _to_sequence,
    ("ConcatFromSequence", 11): _from_sequence,
    **{("Cast", version): _spelled for version in (9, 13, 19, 24)},
}


SPACES = "splits at spaces alone"
TWICE = "an n-gram stands in the pool twice"
NOTHING = "slices of nothing"
DIGITS = "writes eight digits, with which the number does not come back"
BEYOND = "refuses numbers beyond the 64 bits through which it reads"
BEGINNINGS = "takes the beginning of a string that is no number"
REASONS = {
    "StringSplit": {SPACES}, "TfIdfVectorizer": {TWICE}, "Unique": {NOTHING}, "Cast": {DIGITS, BEYOND, BEGINNINGS},
}  # fmt: skip
"""Why onnxruntime gives something else or nothing, by operator."""


def _reason(name: str, inputs: Sequence[Any], attributes: Attributes, failed: bool) -> str:
    """Why onnxruntime may differ on an application; the empty text where nothing is known."""
    match name:
        case "StringSplit":
            blanks = any(c in b"\t\n" for text in inputs[0].reshape(-1).tolist() for c in text)
            holds = not failed and blanks and not attributes.get("delimiter")
        case "TfIdfVectorizer":
            holds = failed and _repeats(attributes)
        case "Unique":
            holds = failed and "axis" in attributes and inputs[0].size == 0
        case "Cast" if inputs[0].dtype == object:
            return BEYOND if failed and any(map(_is_beyond, inputs[0].tolist())) else ""
        case "Cast":
            return DIGITS if not failed and inputs[0].dtype in (np.float32, np.float64) else ""
        case _:
            return ""
    return next(iter(REASONS[name])) if holds else ""


def _is_beyond(text: bytes) -> bool:
    """The number is none of 64 bits: as a double 0, subnormal or infinite, or as an integer too large."""
    if text.lower().strip(b"+-") in (b"inf", b"nan"):
        return False
    size = abs(float(text))
    return size >= 2.0**63 or 0 <= size < np.finfo(np.float64).smallest_normal


def _repeats(attributes: Attributes) -> bool:
    """Whether a pool has an n-gram twice."""
    pool = attributes.get("pool_strings") or attributes["pool_int64s"]
    starts = attributes["ngram_counts"]
    for g, (start, end) in enumerate(zip(starts, [*starts[1:], len(pool)], strict=True)):
        grams = [pool[k : k + g + 1] for k in range(start, end, g + 1)]
        if len(set(grams)) < len(grams):
            return True
    return False


# ---- onnxruntime ------------------------------------------------------------------------------


def _declared(name: str, value: Any) -> Any:
    if isinstance(value, Items):
        kind = helper.np_dtype_to_tensor_dtype(value.items[0].dtype)
        return helper.make_tensor_sequence_value_info(name, kind, None)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def _text(value: Any) -> Any:
    """The value as onnxruntime's interface takes it."""
    if isinstance(value, Items):
        return [_text(it) for it in value.items]
    return np.vectorize(bytes.decode, otypes=[object])(value) if value.dtype == object and value.size else value


def _model(name: str, version: int, case: Case) -> tuple[bytes, dict[str, Any]]:
    inputs, attributes, outputs = case
    names = [f"x{k}" for k in range(len(inputs))]
    if name == "StringNormalizer":
        attributes = {**attributes, "locale": "C.UTF-8"}  # the characters map as in en_US, which few machines have
    node = helper.make_node(name, names, [f"y{k}" for k in range(outputs)], **attributes)
    declared = [_declared(it, value) for it, value in zip(names, inputs, strict=True)]
    results = [onnx.ValueInfoProto(name=f"y{k}") for k in range(outputs)]
    graph = helper.make_graph([node], "g", declared, results)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)
    return made.SerializeToString(), {it: _text(value) for it, value in zip(names, inputs, strict=True)}


def _same(meant: Any, found: Any) -> bool:
    if isinstance(meant, Items):
        return len(meant.items) == len(found) and all(map(_same, meant.items, found))
    expected, other = _text(np.asarray(meant)), np.asarray(found)
    same_kind = expected.dtype == other.dtype or (expected.dtype == object and other.dtype.kind in "OUT")
    return same_kind and expected.shape == other.shape and expected.tolist() == other.tolist()


ALLOWED = (Standing.EXACT, Standing.WITHIN)


def _given(outcome: Mapping[str, Any], outputs: int) -> tuple[Any, ...]:
    """The values of onnxruntime as the text has them; those of other types than tensors are not judged by a bound."""
    given = [outcome[f"y{k}"] for k in range(outputs)]
    return tuple(_bytes(it) if isinstance(it, np.ndarray) and it.dtype.kind in "OUT" else it for it in given)


def _bytes(texts: Any) -> Any:
    made = np.empty(texts.shape, object)
    made.reshape(-1)[:] = [str(text).encode() for text in texts.reshape(-1).tolist()]
    return made


def differences(name: str, version: int, count: int) -> dict[str, list[Any]]:
    """The first cases of an operator by how onnxruntime stands to the text: same, refused by both, or the reason."""
    rng = random.Random(f"{name} {version}")
    every = [CASES[name, version](rng) for _ in range(count)]
    found: dict[str, list[Any]] = {}
    for case, outcome in zip(every, outcomes_of([_model(name, version, case) for case in every]), strict=True):
        inputs, attributes, outputs = case
        meant = applied(Application(name, version, inputs, attributes, (True,) * outputs))
        if isinstance(meant, Undefined):
            if name == "Cast" and not isinstance(outcome, str):
                found.setdefault(BEGINNINGS, []).append((case, outcome, meant))
                continue
            both = "both refuse" if isinstance(outcome, str) else f"the text: {meant.why}"
            word = both if meant.stuck else "not handled"
        elif isinstance(outcome, str):
            word = _reason(name, inputs, attributes, True) or f"onnxruntime: {outcome}"
        elif all(_same(value, outcome[f"y{k}"]) for k, value in enumerate(meant.done.values)):
            word = "same"
        elif all(it is None or it.standing in ALLOWED for it in judge(meant, _given(outcome, outputs))):
            word = "allowed"
        else:
            word = _reason(name, inputs, attributes, False) or "other values"
        found.setdefault(word, []).append((case, outcome, meant))
    return found
