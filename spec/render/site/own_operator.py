"""The page "Add your own operator": files and commands as data (`own_operator.toml`), run in an empty folder.

The commands are those of the whole program, each in a process of its own, as a reader would call them. A recording that
ends otherwise than the page says is a defect of the page.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree.ElementTree import Element

from ...pages.markup import e
from ...project import VARIABLE
from .places import page

TITLE = "Add your own operator"
WIDTH = "100"
"""The columns of the recorded terminal."""
PROGRAM = "from sonnx.spec.cli import main; main()"


@dataclass(frozen=True, slots=True)
class Step:
    """A sentence, a file that is written ("" for none), a command that is run. code: how it must end."""

    says: str
    file: str
    text: str
    command: tuple[str, ...]
    code: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """A step with the output of its command, and the exit code."""

    step: Step
    output: str
    code: int


def steps() -> tuple[Step, ...]:
    """The steps of the page."""
    text = files(__package__).joinpath("own_operator.toml").read_text(encoding="utf-8")
    return tuple(
        Step(
            it.get("says", ""), it.get("file", ""), it.get("text", ""), tuple(it.get("command", ())), it.get("code", 0)
        )
        for it in tomllib.loads(text)["step"]
    )


def recorded() -> tuple[Recorded, ...]:
    """The steps, done one after the other in an empty folder. Raises RuntimeError for one that ends otherwise than the
    page says.
    """
    with TemporaryDirectory() as folder:
        return tuple(_done(step, Path(folder)) for step in steps())


def _done(step: Step, folder: Path) -> Recorded:
    if step.file:
        (folder / step.file).write_text(step.text, encoding="utf-8")
    if not step.command:
        return Recorded(step, "", 0)
    kept = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *step.command],
        cwd=folder,
        env={**kept, "COLUMNS": WIDTH},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    output = done.stdout.decode("utf-8", "replace").rstrip()
    if done.returncode != step.code:
        shown = shlex.join(step.command)
        raise RuntimeError(f"sonnx {shown} ends with {done.returncode}, the page says {step.code}: {output}")
    return Recorded(step, output, done.returncode)


def own_operator_page(session: Sequence[Recorded]) -> str:
    """The page, with what the commands gave when they were run for it."""
    intro = "From an empty folder, in one session: each command below was run when this page was made."
    return page(TITLE, e("p", intro), [part for it in session for part in _shown(it)])


def _shown(it: Recorded) -> Iterator[Element]:
    step = it.step
    if step.says:
        yield e("p", step.says)
    if step.file:
        yield e("p", e("code", step.file), class_="quiet")
        yield e("pre", step.text.strip(), tabindex="0")
    if step.command:
        ends = "" if not it.code else f"\n(exit code {it.code})"
        yield e("pre", f"$ sonnx {shlex.join(step.command)}\n{it.output}{ends}", tabindex="0")
