"""Pages that record a session: files and commands as data (a .toml here for each page), run in an empty folder.

The commands are those of the whole program, and programs in Python that a page writes, each in a process of its own, as
a reader would call them. A recording that ends otherwise than the page says is a defect of the page.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree.ElementTree import Element

from ....pages.markup import e
from ....project import VARIABLE
from ..places import page

WIDTH = "100"
"""The columns of the recorded terminal."""
PROGRAM = "from sonnx.spec.cli import main; main()"


@dataclass(frozen=True, slots=True)
class Step:
    """A sentence, a file that is written ("" for none), a command that is run. code: how it must end. lines: how many
    lines of its output are shown, None for all.
    """

    says: str
    file: str
    text: str
    command: tuple[str, ...]
    code: int
    lines: int | None


@dataclass(frozen=True, slots=True)
class Session:
    """A page: its title, its address in the site, and its steps."""

    title: str
    address: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A step with the output of its command, and the exit code."""

    step: Step
    output: str
    code: int


def sessions() -> tuple[Session, ...]:
    """The sessions, in the order of their addresses."""
    tables = (it for it in files(__package__).iterdir() if it.name.endswith(".toml"))
    return tuple(_session(it.name, it.read_text(encoding="utf-8")) for it in sorted(tables, key=lambda it: it.name))


def _session(name: str, text: str) -> Session:
    data = tomllib.loads(text)
    steps = tuple(
        Step(
            it.get("says", ""),
            it.get("file", ""),
            it.get("text", ""),
            tuple(it.get("command", ())),
            it.get("code", 0),
            it.get("lines"),
        )
        for it in data["step"]
    )
    return Session(data["title"], f"{name.removesuffix('.toml')}.html", steps)


def recorded(session: Session) -> tuple[Recorded, ...]:
    """The steps, done one after the other in an empty folder. Raises RuntimeError for one that ends otherwise than the
    page says.
    """
    with TemporaryDirectory() as folder:
        return tuple(_done(step, Path(folder)) for step in session.steps)


def _done(step: Step, folder: Path) -> Recorded:
    if step.file:
        target = folder / step.file
        target.parent.mkdir(exist_ok=True)
        target.write_text(step.text, encoding="utf-8")
    if not step.command:
        return Recorded(step, "", 0)
    kept = {name: value for name, value in os.environ.items() if name != VARIABLE}
    program, *arguments = step.command
    run = [sys.executable, "-c", PROGRAM] if program == "sonnx" else [sys.executable]
    done = subprocess.run(
        [*run, *arguments],
        cwd=folder,
        env={**kept, "COLUMNS": WIDTH},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    output = done.stdout.decode("utf-8", "replace").rstrip()
    if done.returncode != step.code:
        shown = shlex.join(step.command)
        raise RuntimeError(f"{shown} ends with {done.returncode}, the page says {step.code}: {output}")
    return Recorded(step, output, done.returncode)


def session_page(session: Session, done: tuple[Recorded, ...]) -> str:
    """The page, with what the commands gave when they were run for it."""
    intro = "From an empty folder, in one session: each command below was run when this page was made."
    return page(session.title, e("p", intro), [part for it in done for part in _shown(it)])


def _shown(it: Recorded) -> Iterator[Element]:
    step = it.step
    if step.says:
        yield e("p", step.says)
    if step.file:
        yield e("p", e("code", step.file), class_="quiet")
        yield e("pre", step.text.strip(), tabindex="0")
    if step.command:
        lines = it.output.splitlines()
        left = 0 if step.lines is None else max(len(lines) - step.lines, 0)
        shown = lines if not left else [*lines[: step.lines], f"({left} more lines)"]
        ends = [f"(exit code {it.code})"] if it.code else []
        yield e("pre", "\n".join([f"$ {shlex.join(step.command)}", *shown, *ends]), tabindex="0")
