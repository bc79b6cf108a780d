"""The page of what a program and a terminal may use: the public names of the layers, from their docstrings; the
commands with their options; the files beside the site.

A layer names its modules by entry points `sonnx.interface`, and files by `sonnx.pages`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from xml.etree.ElementTree import Element

from ...pages.markup import Piece, e
from .places import anchor, page

TITLE = "Commands and interfaces"
MODULES, FILES = "sonnx.interface", "sonnx.pages"
EXIT_CODES = (
    ("0", "good: CONFORMS, CONFIRMED, agree, done"),
    ("1", "a finding: VIOLATES, REFUTED, a mismatch, stuck"),
    ("2", "usage, unreadable input, output that cannot be written"),
    ("3", "undecided: the tool could not decide, or an operator has no meaning here"),
    ("4", "a defect of the tool"),
    ("130, 143", "interrupted, terminated; of several models or cases, what is done is reported"),
    ("141", "the reader of the output went away"),
)
"""The exit codes of all commands."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command as `--help` shows it. options: how each is written, and what it is for."""

    name: str
    says: str
    options: tuple[tuple[str, str], ...]


def beside() -> Mapping[str, str]:
    """The files that layers put beside the site, by name."""
    return {name: text for point in entry_points(group=FILES) for name, text in point.load()().items()}


def interface_page(commands: Sequence[Command], files: Iterable[str]) -> str:
    """The page. commands: in the order in which they are shown. files: those beside the site, by name."""
    modules = [import_module(point.value) for point in sorted(entry_points(group=MODULES))]
    codes = [e("tr", e("td", code), e("td", meaning)) for code, meaning in EXIT_CODES]
    return page(
        TITLE,
        e("h2", "Exit codes"),
        e("table", e("thead", e("tr", e("th", "code"), e("th", "meaning"))), e("tbody", codes)),
        e("h2", "Files"),
        e("ul", [e("li", e("a", name, href=name)) for name in files]),
        e("h2", "Commands"),
        [_command(command) for command in commands],
        e("h2", "From Python"),
        [part for module in modules for part in _module(module)],
    )


def _command(command: Command) -> Element:
    rows = [e("tr", e("td", e("code", written)), e("td", coded(says))) for written, says in command.options]
    return e(
        "article",
        e("h3", f"sonnx {command.name}"),
        _paragraphs(command.says),
        e("div", e("table", e("tbody", rows)), class_="scroll") if rows else None,
        id=anchor(f"sonnx {command.name}"),
    )


def _module(module: ModuleType) -> Iterator[Element]:
    yield e("h3", e("code", module.__name__))
    yield from _paragraphs(inspect.getdoc(module) or "")
    for name in sorted(module.__all__):
        value = getattr(module, name)
        yield e(
            "article",
            e("h4", e("code", f"{name}{_signature(value)}")),
            _paragraphs(inspect.getdoc(value) or ""),
            id=anchor(f"{module.__name__}.{name}"),
        )


def _signature(value: object) -> str:
    """The parameters of a function or class, "" for what takes none."""
    if not callable(value) or (isinstance(value, type) and issubclass(value, Exception | str)):
        return ""
    return str(inspect.signature(value)).replace("'", "")


def _paragraphs(text: str) -> list[Element]:
    """A docstring as paragraphs: what is indented, or behind the mark of click for lines that stay, keeps its lines."""
    parts = [part for part in re.split(r"\n\s*\n", text.strip("\n")) if part.strip()]
    return [
        e("pre", inspect.cleandoc(part.replace("\b", "").strip("\n")), tabindex="0")
        if part.startswith((" ", "\b"))
        else e("p", coded(" ".join(part.split())))
        for part in parts
    ]


def coded(text: str) -> list[Piece]:
    """The text; what stands between backticks is code."""
    return [e("code", part.strip("`")) if part.startswith("`") else part for part in re.split(r"(`[^`]+`)", text)]
