"""The form of a certificate as the rechecker reads it: its bytes, its seal, the type of every field at any depth."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from sonnx.semantics.errors import ModelError

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:sonnx:certificate:v2"
TRANSFORM_TYPE: Final = "urn:sonnx:transform:v1"
SIZE_LIMIT: Final = 256 * 1024 * 1024
INTEGER_LIMIT: Final = 2**53 - 1
NESTING: Final = 400
VERDICTS: Final = ("CONFORMS", "VIOLATES", "UNDECIDED")
RULE_VERDICTS: Final = ("holds", "violated", "unknown", "obligation", "conditional")

Object = dict[str, Any]
Check = Callable[[object, str], None]


def read(source: bytes | Path | str) -> Object:
    """The statement in `source` (bytes, or the path of a file), its form and seal checked.

    Raises ModelError with one line when it is too large, not JSON, not canonical, not of the form, or damaged.
    """
    data = source if isinstance(source, bytes) else _content(Path(source))
    if len(data) > SIZE_LIMIT:
        raise ModelError(f"certificate: larger than {SIZE_LIMIT} bytes; no certificate of this format is")
    try:
        value = json.loads(
            data.decode("ascii"), object_pairs_hook=_object, parse_float=_no_float, parse_constant=_no_float
        )
    except (ValueError, RecursionError) as error:
        raise ModelError(f"certificate: not JSON in ASCII ({_line(error)}); give a file that certify wrote") from None
    _exact(value)
    if isinstance(value, dict) and str(value.get("predicateType")).startswith("urn:sonnx:certificate:v1"):
        raise ModelError("certificate: of format v1, which this version does not replay; certify the model again")
    if isinstance(value, dict) and value.get("predicateType") == TRANSFORM_TYPE:
        _TRANSFORM(value, "certificate")
    else:
        _STATEMENT(value, "certificate")
    if sealed(value) != data:
        raise ModelError("certificate: damaged, or not in canonical form: its seal does not match; get it again")
    statement: Object = value
    return statement


def sealed(statement: Object) -> bytes:
    """The one sequence of bytes of a statement: its seal is made anew."""
    bare = {**statement, "predicate": {k: v for k, v in statement["predicate"].items() if k != "seal"}}
    seal = hashlib.sha256(spelled(bare).encode()).hexdigest()
    return spelled({**bare, "predicate": {**bare["predicate"], "seal": seal}}).encode() + b"\n"


def spelled(value: object) -> str:
    """The canonical form of a value; two values are the same only if it is, so that true is not 1."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(SIZE_LIMIT + 1)
    except OSError as error:
        reason = error.strerror or _line(error)
        raise ModelError(f"certificate: cannot be read ({reason}); name the file that certify wrote") from None


def _line(error: object) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text.encode("ascii", "backslashreplace").decode("ascii")[:120]


def _object(pairs: list[tuple[str, object]]) -> Object:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ModelError("certificate: an object names one key twice; give a file that certify wrote")
    return fields


def _no_float(text: str) -> object:
    raise ModelError(f"certificate: holds the number {text[:40]}; only integers are allowed")


def _exact(value: object) -> None:
    """Raises ModelError for integers on which readers differ, and for what nests deeper than a formula does."""
    waiting = [(value, 0)]
    while waiting:
        it, depth = waiting.pop()
        if depth > NESTING:
            raise ModelError(f"certificate: nests more than {NESTING} deep; give a file that certify wrote")
        if type(it) is int and abs(it) > INTEGER_LIMIT:
            raise ModelError(f"certificate: the integer {str(it)[:40]} has more than 53 bits, on which readers differ")
        if isinstance(it, (list, dict)):
            waiting += [(part, depth + 1) for part in (it.values() if isinstance(it, dict) else it)]


# ---- Types of fields ----------------------------------------------------------------------------


def _fail(place: str, wanted: str) -> ModelError:
    return ModelError(f"certificate: {place} must be {wanted}; give a file that certify wrote")


def _of(type_: type, wanted: str) -> Check:
    def check(value: object, place: str) -> None:
        if type(value) is not type_:
            raise _fail(place, wanted)

    return check


_text, _flag, _integer = _of(str, "a text"), _of(bool, "true or false"), _of(int, "an integer")


def _any(value: object, place: str) -> None:
    """Any value."""


def _bound(value: object, place: str) -> None:
    if value is not None:
        _integer(value, place)


def _digest(value: object, place: str) -> None:
    if not (isinstance(value, str) and len(value) == 64 and all(char in "0123456789abcdef" for char in value)):
        raise _fail(place, "a SHA-256 digest in lower-case hexadecimal")


def _one_of(*texts: str) -> Check:
    def check(value: object, place: str) -> None:
        if value not in texts or not isinstance(value, str):
            raise _fail(place, "one of " + ", ".join(texts))

    return check


def _list(item: Check, least: int = 0) -> Check:
    def check(value: object, place: str) -> None:
        if not isinstance(value, list) or len(value) < least:
            raise _fail(place, "a list" if not least else f"a list of at least {least}")
        for index, element in enumerate(value):
            item(element, f"{place}[{index}]")

    return check


def _tuple(*items: Check) -> Check:
    def check(value: object, place: str) -> None:
        if not isinstance(value, list) or len(value) != len(items):
            raise _fail(place, f"a list of {len(items)}")
        for index, (item, element) in enumerate(zip(items, value, strict=True)):
            item(element, f"{place}[{index}]")

    return check


def _mapping(item: Check) -> Check:
    def check(value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise _fail(place, "an object")
        for key, element in value.items():
            item(element, f"{place}.{_line(key)}")

    return check


def _or_none(item: Check) -> Check:
    def check(value: object, place: str) -> None:
        if value is not None:
            item(value, place)

    return check


def _record(optional: Mapping[str, Check] | None = None, /, **fields: Check) -> Check:
    """optional: the fields that may be left out."""
    may = dict(optional or {})

    def check(value: object, place: str) -> None:
        if not isinstance(value, dict) or set(value) - set(may) != set(fields):
            raise _fail(place, "an object with exactly the keys " + ", ".join(sorted(fields)))
        for key, item in (may | fields).items():
            if key in value:
                item(value[key], f"{place}.{key}")

    return check


_FINDINGS = _list(_record(where=_text, witness=_mapping(_any)))
_RULE = _record(
    {"waived": _integer},
    besides=_mapping(_FINDINGS),
    constraint=_text,
    counted=_flag,
    findings=_FINDINGS,
    id=_text,
    obligations=_integer,
    rule_set=_text,
    statement=_digest,
    status=_text,
    total=_integer,
    verdict=_one_of(*RULE_VERDICTS),
)
_RULE_SET = _record(
    digest=_digest,
    includes=_list(_text),
    name=_text,
    obligations=_integer,
    strict=_flag,
    variant=_text,
    verdict=_one_of(*VERDICTS),
)
_MODEL = _record(
    functions=_list(_tuple(_text, _text, _text)),
    graphs=_integer,
    ir_version=_integer,
    nodes=_integer,
    opsets=_list(_tuple(_text, _integer)),
    source=_text,
    tensors=_integer,
)
_WAIVER = _record(model=_text, place=_text, reason=_text, rule=_text, until=_text, who=_text)
_FILES = _list(_record(digest=_record(sha256=_digest), name=_text), 1)
_PREDICATE = _record(
    {"added": _FILES, "waivers": _list(_WAIVER, 1)},
    conditions=_mapping(_list(_any)),
    model=_MODEL,
    not_examined=_list(_text),
    obligations=_integer,
    rule_sets=_list(_RULE_SET, 1),
    rules=_list(_RULE),
    seal=_digest,
    sizes=_list(_tuple(_text, _integer, _bound)),
    tools=_mapping(_text),
    verdict=_one_of(*VERDICTS),
    witnesses=_mapping(_mapping(_any)),
)
_STATEMENT = _record(
    _type=_one_of(STATEMENT_TYPE),
    predicate=_PREDICATE,
    predicateType=_one_of(PREDICATE_TYPE),
    subject=_FILES,
)

# ---- Two models ---------------------------------------------------------------------------------

_NUMBER_OR_NONE = _or_none(_integer)
_NEW = _or_none(_tuple(_integer, _text))
_VALUE = _or_none(_record(dims=_list(_integer), element=_text, sha256=_digest, tensor=_integer))
_MADE = _record(
    attributes=_mapping(_tuple(_text, _list(_text))),
    domain=_text,
    inputs=_list(_NUMBER_OR_NONE),
    name=_text,
    node=_integer,
    op_type=_text,
    outputs=_list(_NEW, 1),
    version=_integer,
)
_STEPS: Final[Mapping[str, Check]] = {
    "rewrite": _record(
        do=_text,
        instead=_list(_tuple(_integer, _integer)),
        left=_list(_NEW),
        made=_list(_MADE),
        nodes=_list(_integer, 1),
        rule=_text,
        swapped=_list(_tuple(_integer, _text)),
    ),
    "fold": _record(do=_text, node=_integer, values=_list(_VALUE)),
    "merge": _record(do=_text, node=_integer, other=_integer),
    "share": _record(do=_text, other=_integer, tensor=_integer),
    "drop": _record(do=_text, node=_integer),
    "raise": _record(do=_text, opset=_integer),
}


def _step(value: object, place: str) -> None:
    done = value.get("do") if isinstance(value, dict) else None
    if not isinstance(done, str) or done not in _STEPS:
        raise _fail(place, "a step whose do is one of " + ", ".join(_STEPS))
    _STEPS[done](value, place)


_TRANSFORM = _record(
    _type=_one_of(STATEMENT_TYPE),
    predicate=_record(
        assumed=_list(_text),
        kind=_one_of("optimize", "equiv"),
        names=_list(_tuple(_integer, _text)),
        rules=_mapping(_record(claim=_text, proof=_digest, text=_digest)),
        seal=_digest,
        sequences=_list(_record(fixed=_flag, steps=_list(_step)), 1),
        strength=_one_of("exact", "allowed", "reals"),
        theorems=_mapping(_digest),
        tools=_mapping(_text),
    ),
    predicateType=_one_of(TRANSFORM_TYPE),
    subject=_FILES,
)
