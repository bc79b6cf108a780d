"""The Debug Adapter Protocol's JSON schema, as the debugpy wheel carries it, made strict and brought up to date.

Strict: the parts of a message are merged and every key that is not named is refused, which the schema by itself
allows; only the arguments of `launch`, `attach` and `restart` may hold more. Debugpy's copy is of protocol 1.64; what
1.65 to 1.70 added (https://microsoft.github.io/debug-adapter-protocol/changelog) is stated below as far as the adapter
or a client uses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import files
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft4Validator

Json = dict[str, Any]

_INTEGER: Final[Json] = {"type": "integer"}
_TEXT: Final[Json] = {"type": "string"}
_FLAG: Final[Json] = {"type": "boolean"}

NEWER: Final[Mapping[str, Json]] = {
    # 1.65: modes of breakpoints
    "SourceBreakpoint": {"mode": _TEXT},
    "ExceptionFilterOptions": {"mode": _TEXT},
    # 1.65, 1.66: mode; data breakpoints on bytes
    "DataBreakpointInfoArguments": {"mode": _TEXT, "bytes": _INTEGER, "asAddress": _FLAG},
    # 1.66, 1.69
    "Capabilities": {"supportsDataBreakpointBytes": _FLAG, "supportsANSIStyling": _FLAG},
    "InitializeRequestArguments": {"supportsANSIStyling": _FLAG},
    # 1.67: where an expression stands
    "EvaluateArguments": {"line": _INTEGER, "column": _INTEGER, "source": {"$ref": "#/definitions/Source"}},
    # 1.68: references to locations
    "Variable": {"declarationLocationReference": _INTEGER, "valueLocationReference": _INTEGER},
    "EvaluateResponse/body": {"valueLocationReference": _INTEGER},
    "SetVariableResponse/body": {"valueLocationReference": _INTEGER},
    "SetExpressionResponse/body": {"valueLocationReference": _INTEGER},
    "OutputEvent/body": {"locationReference": _INTEGER},
}
"""The properties that newer versions added, by definition or by the part of it."""

LOCATIONS: Final[Mapping[str, Json]] = {
    "LocationsRequest": {
        "allOf": [
            {"$ref": "#/definitions/Request"},
            {
                "type": "object",
                "properties": {
                    "command": {"type": "string", "enum": ["locations"]},
                    "arguments": {"$ref": "#/definitions/LocationsArguments"},
                },
                "required": ["command", "arguments"],
            },
        ]
    },
    "LocationsArguments": {
        "type": "object",
        "properties": {"locationReference": _INTEGER},
        "required": ["locationReference"],
    },
    "LocationsResponse": {
        "allOf": [
            {"$ref": "#/definitions/Response"},
            {
                "type": "object",
                "properties": {
                    "body": {
                        "type": "object",
                        "properties": {
                            "source": {"$ref": "#/definitions/Source"},
                            "line": _INTEGER,
                            "column": _INTEGER,
                            "endLine": _INTEGER,
                            "endColumn": _INTEGER,
                        },
                        "required": ["source", "line"],
                    }
                },
            },
        ]
    },
}
"""The request of 1.68 that debugpy's copy lacks."""

_HARMFUL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls of terminals and of the direction of text, halves of characters."""

OPEN: Final = frozenset(("LaunchRequestArguments", "AttachRequestArguments", "RestartArguments"))
"""What may hold keys that the schema does not name."""


@cache
def definitions() -> Json:
    """All definitions, strict. Raises FileNotFoundError where debugpy is not installed or has no schema."""
    path = next((it for it in files("debugpy") or () if it.name == "debugProtocol.json"), None)
    if path is None:
        raise FileNotFoundError("debugProtocol.json in the distribution debugpy")
    raw: Json = json.loads(Path(str(path.locate())).read_text(encoding="utf-8"))["definitions"]
    raw |= {name: found for name, found in LOCATIONS.items() if name not in raw}
    return {name: _strict(name, _merged(it, raw), name in OPEN) for name, it in raw.items()}


@cache
def validator(name: str) -> Draft4Validator:
    """The validator of a definition."""
    return Draft4Validator({"$ref": f"#/definitions/{name}", "definitions": definitions()})


@cache
def kinds() -> Mapping[tuple[str, str], str]:
    """The definition of each request, response and event, by type and name."""
    found: dict[tuple[str, str], str] = {}
    for name, it in definitions().items():
        stated = it.get("properties", {})
        for key, kind in (("command", "request"), ("event", "event")):
            if name.endswith(kind.capitalize()) and name != kind.capitalize() and "enum" in stated.get(key, {}):
                word = stated[key]["enum"][0]
                found[kind, word] = name
                if kind == "request":
                    found["response", word] = f"{name.removesuffix('Request')}Response"
    return found


def wrong(message: Json) -> list[str]:
    """What is wrong with a message, in sentences; empty when nothing is. A request that the protocol does not know may
    be sent, to see it refused."""
    kind = message.get("type")
    word = message.get("event" if kind == "event" else "command")
    if kind not in ("request", "response", "event") or not isinstance(word, str):
        return [f"neither request, response nor event: {message}"]
    if kind == "response" and not message.get("success"):
        name = "ErrorResponse"
    else:
        name = kinds().get((kind, word), kind.capitalize() if kind != "event" else "")
    if not name:
        return [f"the protocol has no event {word!r}"]
    errors = validator(name).iter_errors(message)
    found = [f"{kind} {word}: {'/'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]
    found += [f"{kind} {word}: {text}" for text in _odd(message, "")]
    if kind != "request":
        found += [f"{kind} {word}: {text!r} is not harmless" for text in _texts(message) if _HARMFUL.search(text)]
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _odd(value: Any, path: str) -> Iterator[str]:
    """References that do not fit into 31 bits, other integers beyond those that every client can hold."""
    if isinstance(value, dict):
        for key, part in value.items():
            if isinstance(part, int) and key.endswith("Reference") and not 0 <= part < 2**31:
                yield f"{path}/{key} is {part}"
            yield from _odd(part, f"{path}/{key}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _odd(part, f"{path}/{i}")
    elif isinstance(value, int) and abs(value) >= 2**53:
        yield f"{path} is {value}"


def _merged(it: Json, raw: Json) -> Json:
    """A definition with the parts of its `allOf` in one object."""
    if "allOf" not in it:
        return it
    found: Json = {"type": "object", "properties": {}, "required": []}
    for part in it["allOf"]:
        whole = _merged(raw[part["$ref"].rpartition("/")[2]] if "$ref" in part else part, raw)
        found["properties"] |= whole.get("properties", {})
        found["required"] += [name for name in whole.get("required", []) if name not in found["required"]]
    if not found["required"]:
        del found["required"]
    return found


def _strict(path: str, it: Any, loose: bool) -> Any:
    """Every object with named properties refuses others, newer properties included."""
    if not isinstance(it, dict):
        return it
    found = {key: _strict(path, part, False) for key, part in it.items() if key != "properties"}
    if "properties" in it:
        stated = {key: _strict(f"{path}/{key}", part, False) for key, part in it["properties"].items()}
        found["properties"] = stated | {key: part for key, part in NEWER.get(path, {}).items() if key not in stated}
        if not loose:
            found.setdefault("additionalProperties", False)
    return found
