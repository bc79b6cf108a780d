"""What the comments of a specification file say: its introduction, and the sections into which it is divided."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a file that begins at a line; title "" for what stands before the first heading."""

    line: int
    title: str
    remark: str


def sections(text: str) -> tuple[Section, ...]:
    """The sections of a file; the first one's remark is the file's introduction."""
    lines = text.split("\n")
    found = [Section(1, "", _comment(lines, 0))]
    for number, line in enumerate(lines):
        heading = re.fullmatch(r"#\s*-{3,}\s*(\S.*?)\s*-{3,}\s*", line)
        if heading:
            found.append(Section(number + 1, heading[1], _comment(lines, number + 1)))
    return tuple(found)


def _comment(lines: list[str], first: int) -> str:
    """The comment that begins at a line, as one text."""

    def comments() -> Iterator[str]:
        for line in lines[first:]:
            if not line.startswith("# ") or line.startswith("# --"):
                return
            yield line[2:].strip()

    return " ".join(comments())


def first_sentence(text: str) -> str:
    """The first sentence of a text, without the part's number in front of it."""
    sentence = re.sub(r"^Part \d+(, continued)?[:,] ", "", text).partition(". ")[0].rstrip(".")
    return f"{sentence[:1].upper()}{sentence[1:]}."


def title(file: str) -> str:
    """The heading of a file's page, made of its name relative to `spec/`."""
    folder, _, stem = file.removesuffix(".sonnx").rpartition("/")
    words = stem.replace("-", ", ")
    if folder == "profiles":
        return f"Rule set {stem}"
    number, _, rest = stem.partition("-")
    if folder == "6-properties":
        return f"Properties {number}: {rest.replace('-', ', ')}"
    if folder:
        return f"Operators: {words}"
    return f"Part {number}: {rest.replace('-', ', ')}" if number.isdigit() else stem.capitalize()


def page_name(file: str) -> str:
    """The name of a file's page."""
    folder, _, stem = file.removesuffix(".sonnx").rpartition("/")
    prefix = {"": "", "profiles": "rules-", "6-properties": "properties-"}.get(folder, "family-")
    return f"{prefix}{stem}.html"
