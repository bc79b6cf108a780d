"""`sonnx spec`: check, print and render the specification."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

if TYPE_CHECKING:
    from .elaborate import Elaboration
    from .errors import SpecError
    from .syntax import File


@click.group()
def spec() -> None:
    """Check, print and render the specification that this package judges by."""


@spec.command()
def check() -> None:
    """Parse and elaborate the whole specification, and count its declarations.

    Exit code: 0 sound, 1 mistakes (each is printed with its place).
    """
    from . import library
    from .elaborate import elaborate
    from .errors import SpecError
    from .parse import parse

    texts = library.read_texts()
    files, errors = [], []
    for name, text in texts.items():
        try:
            files.append(parse(text, name))
        except SpecError as error:
            errors.append(error)
    if errors:
        _refuse(errors, texts)
    elaboration = elaborate(files)
    if elaboration.errors:
        _refuse(elaboration.errors, texts)
    for line in counts(files, elaboration):
        click.echo(line)


@spec.command(name="print")
@click.argument("file")
def print_(file: str) -> None:
    """Print FILE, a file of the specification or any file in its language, in the standard layout."""
    from . import library
    from .errors import SpecError
    from .parse import parse
    from .printer import print_file

    texts = library.read_texts()
    name = file if file in texts else next((n for n in texts if Path(n).stem == file), file)
    try:
        text = texts[name] if name in texts else Path(file).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise click.UsageError(f"there is no file {file!r}; the specification has {', '.join(texts)}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file!r} is no UTF-8 text (byte {error.start})") from error
    try:
        click.echo(print_file(parse(text, name)), nl=False)
    except SpecError as error:
        _refuse([error], {name: text})


@spec.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--format", "form", type=click.Choice(["html", "markdown"]), default="html", show_default=True)
def render(folder: Path, form: str) -> None:
    """Write the specification as a document into FOLDER: one page for each file, and an index."""
    from .library import specification
    from .render import documents

    pages = documents(tuple(specification().files.values()), form)
    for name, text in pages.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    click.echo(f"{len(pages)} pages in {folder}")


def _refuse(errors: list[SpecError] | tuple[SpecError, ...], texts: Mapping[str, str]) -> None:
    """Prints the mistakes and ends with exit code 1."""
    from .cli import FINDING
    from .errors import render_all
    from .inert import inert

    click.echo(inert(render_all(errors, texts)), err=True)
    click.echo(f"{len(errors)} mistake{'s' if len(errors) > 1 else ''}", err=True)
    sys.exit(FINDING)


def counts(files: list[File], elaboration: Elaboration) -> list[str]:
    """The counts of declarations, and of each rule set's rules by status."""
    from collections import Counter

    from .syntax import clause

    kinds = Counter(function.kind for function in elaboration.functions.values())
    rows = [
        ("files", len(files)),
        ("sorts", len(elaboration.sorts)),
        ("facts", kinds["fact"]),
        ("defined", kinds["define"]),
        ("inductive", kinds["inductive"]),
        ("primitive", kinds["fun"]),
        ("constraints", len(elaboration.constraints)),
        ("transitions", len(elaboration.transitions)),
        ("operators", len(elaboration.operators)),
        ("rule sets", len(elaboration.profiles)),
    ]
    lines = [f"{what:<12} {number:>5}" for what, number in rows]
    for profile in elaboration.profiles.values():
        states = Counter(clause(rule.clauses, "status") or "current" for rule in profile.rules)
        details = ", ".join(f"{number} {status}" for status, number in sorted(states.items()))
        lines.append(f"  {profile.name:<16} {len(profile.rules):>3} rules: {details}")
    return lines
