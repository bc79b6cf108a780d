"""The example models of the package: some that conform, the working group's example, one for each rule broken.

`examples.toml` holds them in ONNX's textual syntax; they are parsed on request, so the package ships no binary model.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Example:
    """A model in ONNX's textual syntax. breaks: the (rule set, rule) it is to break; None for one that conforms, some
    for certain sizes only, or with an obligation. listing: the same graph as `printable_graph` prints it, "" for most.
    """

    name: str
    about: str
    breaks: tuple[str, str] | None
    text: str
    listing: str = ""


def examples() -> tuple[Example, ...]:
    """All example models, the conforming one first."""
    text = files(__package__).joinpath("examples.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["example"]
    return tuple(Example(**{**row, "breaks": tuple(row["breaks"]) if "breaks" in row else None}) for row in rows)


def write(folder: Path) -> tuple[Path, ...]:
    """Write every example as a binary model into `folder`, which is made; the working group's one as a listing too."""
    from onnx import parser

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for example in examples():
        target = folder / f"{example.name}.onnx"
        target.write_bytes(parser.parse_model(example.text).SerializeToString(deterministic=True))
        written.append(target)
        if example.listing:
            listing = folder / f"{example.name}.txt"
            listing.write_text(example.listing, encoding="utf-8")
            written.append(listing)
    return tuple(written)
