"""`sonnx spec`: check, print and render the specification."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

if TYPE_CHECKING:
    from ..elaborate.declarations import Elaboration
    from ..language.errors import SpecError
    from ..language.syntax import Declaration, Operator, Source, Span
    from ..library import Specification
    from ..render.site.interface import Command


UNKNOWN = frozenset((
    "name/function", "name/sort", "profile/constraint", "profile/includes", "operator/rule", "apply/undefined"
))  # fmt: skip
"""The mistakes of naming what is declared nowhere."""


@click.group()
def spec() -> None:
    """Check, print and render the specification that this package judges by."""


@spec.command()
def check() -> None:
    """Parse and elaborate the whole specification, count its declarations, and list which operators it defines.

    Each operator is listed with its versions (defined by equations, composed of others, primitive, by a rule of
    execution, missing), and each definition by equations, by its first version, with what is recorded of its
    definedness: proved for arbitrary sizes; listed: proved but for what is left to a primitive; tested: proved for few
    axes only, and tried on small shapes; stale: the definition has changed since, `sonnx definedness --record` tries it
    again. So many are shown for every number of axes, the others at 0 to 4 axes and for lists of up to 3 entries.

    Exit code: 0 sound, 1 mistakes (each is printed with its place).

    \b
    Examples:
      sonnx spec check
      sonnx --spec own.sonnx spec check
    """
    from .. import parsed, project
    from ..elaborate.coverage import coverage, coverage_lines
    from ..elaborate.declarations import elaborate
    from ..language.errors import SpecError
    from ..language.parse import parse

    texts = {**parsed.read_texts(), **project.texts()}
    files, errors = [], []
    for name, text in texts.items():
        try:
            files.append(parse(text, name))
        except SpecError as error:
            errors.append(error)
    elaboration = elaborate(files)
    # what a file that cannot be read declares is missing elsewhere through no fault of the others
    errors += [error for error in elaboration.errors if not errors or error.kind not in UNKNOWN]
    if errors:
        _refuse(errors, texts)
    covered = coverage(elaboration.operators, elaboration.functions, elaboration.contracts)
    counted, judged = _definedness(elaboration)
    for line in (*counts(files, elaboration), *counted, *coverage_lines(covered, judged)):
        click.echo(line)


def _definedness(elaboration: Elaboration) -> tuple[list[str], Mapping[str, Mapping[int, str]]]:
    """The line that counts what is recorded of definedness, and the verdicts, from the layer that proves it; nothing
    where none is installed that does."""
    from importlib.metadata import entry_points

    for point in entry_points(group="sonnx.definedness"):
        line, judged = point.load()(elaboration.operators, elaboration.functions)
        return [line], judged
    return [], {}


@spec.command()
@click.argument("operator", metavar="NAME")
@click.option("--version", type=int, help="The opset version of an operator; the newest one without it.")
@click.option("--as-written", is_flag=True, help="A version that is stated as a difference is shown as such.")
def show(operator: str, version: int | None, as_written: bool) -> None:
    """Show what NAME means, an operator, a constraint, a theorem or whatever else is declared: the text of it, and of
    the definitions that it uses. A version of an operator that is stated as a difference is shown in full.

    \b
    Examples:
      sonnx spec show Conv
      sonnx spec show Softmax --version 11
    """
    from ..elaborate.coverage import in_force, used_definitions
    from ..elaborate.schema import signatures
    from ..elaborate.scope import hint
    from ..library import specification

    library = specification()
    known = signatures()
    if operator in library.contracts:
        _print_texts([library.contracts[operator].span])
        return
    if operator in library.operators and operator not in known:
        own = library.operators[operator]
        _print_texts([*(it.span for it in own), *(it.span for it in used_definitions(own[-1], library.functions))])
        return
    if operator not in known:
        declared = _declared(library)
        if operator not in declared:
            near = hint(operator, [*known, *declared])
            raise click.UsageError(f"ONNX has no operator {operator!r}, and nothing of that name is declared{near}")
        if version is not None:
            raise click.UsageError(f"{operator} is no operator, and has no versions")
        _print_declared(declared[operator], library)
        return
    versions = ", ".join(str(s.version) for s in known[operator])
    if operator not in library.operators:
        raise click.UsageError(f"the specification does not define {operator} yet (versions {versions} of ONNX)")
    meaning = in_force(
        library.operators[operator], operator, known[operator][-1].version if version is None else version
    )
    if meaning == 0:
        raise click.UsageError(f"there is no {operator} at opset version {version}; its versions are {versions}")
    if isinstance(meaning, int):
        raise click.UsageError(f"the specification does not define {operator}-{meaning} yet; versions: {versions}")
    if as_written or not _print_expanded(meaning):
        _print_texts([meaning.span])
    _print_texts([*(definition.span for definition in used_definitions(meaning, library.functions))])


def _declared(library: Specification) -> dict[str, Declaration]:
    """The declarations other than operators and rule sets, by name."""
    return {
        **library.rewrites, **library.sorts, **library.functions, **library.constraints, **library.transitions,
        **library.properties,
    }  # fmt: skip


def _print_declared(declared: Declaration, library: Specification) -> None:
    from ..elaborate.coverage import definitions_in
    from ..render.site.references import expressions

    used = definitions_in(expressions(declared), library.functions)
    _print_texts([declared.span, *(it.span for it in used if it.name != declared.name)])


def _print_expanded(meaning: Operator) -> bool:
    """Prints the full text of a meaning that is stated as a difference; False where the text itself is full."""
    from ..language.printer import print_declaration

    if meaning.like:
        place = f"{meaning.span.file}:{meaning.span.line}, stated there as what differs from {meaning.like[0]}"
        click.echo(f"# {place}\n{print_declaration(meaning)}\n")
    return bool(meaning.like)


def _print_texts(spans: Iterable[Span]) -> None:
    from ..parsed import read_texts
    from ..project import texts as added

    texts = {**read_texts(), **added()}
    for span in spans:
        lines = texts[span.file].split("\n")[span.line - 1 : span.end_line]
        click.echo("\n".join((f"# {span.file}:{span.line}", *lines, "")))


@spec.command(name="print")
@click.argument("file")
def print_(file: str) -> None:
    """Print FILE, a file of the specification or any file in its language, in the standard layout.

    \b
    Examples:
      sonnx spec print 3-execution
      sonnx spec print own.sonnx
    """
    from .. import parsed
    from ..language.errors import SpecError
    from ..language.parse import parse
    from ..language.printer import print_file

    texts = parsed.read_texts()
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
@click.pass_context
def render(context: click.Context, folder: Path, form: str) -> None:
    """Write the specification into FOLDER: a site that needs no network, or a Markdown file for each of its files.

    The site has a page for each part and each operator, with examples that are executed now.

    \b
    Examples:
      sonnx spec render site
      sonnx spec render text --format markdown
    """
    from .. import parsed, project
    from ..library import specification
    from ..pages import check_installed

    if form == "html":
        check_installed()
    folder.mkdir(parents=True, exist_ok=True)  # before the work: a folder that cannot be made is told at once
    texts = {**parsed.read_texts(), **project.texts()}
    if form == "html":
        from ..render.site import site
        from ..render.site.examples import executor, read_examples
        from ..render.site.interface import TITLE, beside, interface_page
        from ..render.site.places import INTERFACE
        from ..render.site.sessions import recorded, session_page, sessions

        execute = executor()
        files = beside()
        shown = () if execute is None else sessions()
        more = {it.address: (it.title, session_page(it, recorded(it))) for it in shown}
        more[INTERFACE] = (TITLE, interface_page(list(listed_commands(context)), files))
        pages = {**site(specification(), texts, read_examples(), execute, more), **files}
    else:
        from ..render.markdown import markdown

        pages = markdown(tuple(specification().files.values()))
    for name, text in pages.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    click.echo(f"{len(pages)} pages in {folder}")


def listed_commands(context: click.Context) -> Iterator[Command]:
    """The commands of the whole program as data, those of a group behind it."""
    from ..render.site.interface import Command

    root = context.find_root()

    def below(group: click.Command, names: str) -> Iterator[tuple[str, click.Command]]:
        if not isinstance(group, click.Group):
            return
        for name in group.list_commands(root):
            command = group.get_command(root, name)
            if command is not None:
                yield f"{names}{name}", command
                yield from below(command, f"{names}{name} ")

    for name, command in below(root.command, ""):
        records = (parameter.get_help_record(root) for parameter in command.params)
        yield Command(name, inspect.cleandoc(command.help or ""), tuple(it for it in records if it is not None))


def _refuse(errors: list[SpecError] | tuple[SpecError, ...], texts: Mapping[str, str]) -> None:
    """Prints the mistakes and ends with exit code 1."""
    from ..cli import FINDING
    from ..language.errors import render_all
    from ..terminal import inert

    click.echo(inert(render_all(errors, texts)), err=True)
    click.echo(f"{len(errors)} mistake{'s' if len(errors) > 1 else ''}", err=True)
    sys.exit(FINDING)


def counts(files: list[Source], elaboration: Elaboration) -> list[str]:
    """The counts of declarations, and of each rule set's rules by status."""
    from collections import Counter

    from ..language.syntax import clause, values

    kinds = Counter(function.kind for function in elaboration.functions.values())
    rows = [
        ("files", len(files)),
        ("sorts", len(elaboration.sorts)),
        ("facts", kinds["fact"]),
        ("defined", kinds["define"]),
        ("inductive", kinds["inductive"]),
        ("primitive", kinds["fun"]),
        ("records", kinds["record"]),
        ("fields", kinds["field"]),
        ("constraints", len(elaboration.constraints)),
        ("transitions", len(elaboration.transitions)),
        ("operators", len(elaboration.operators)),
        ("rule sets", len(elaboration.profiles)),
        ("rewrites", len(elaboration.rewrites)),
    ]
    lines = [f"{what:<12} {number:>5}" for what, number in rows]
    for profile in elaboration.profiles.values():
        states = Counter(clause(rule.clauses, "status") or "current" for rule in profile.rules)
        details = ", ".join(f"{number} {status}" for status, number in sorted(states.items()))
        kind = clause(profile.clauses, "collects")
        if kind is not None:
            every = (operator for versions in elaboration.operators.values() for operator in versions)
            taken = [s for operator in every for s in operator.statements if s.kind == kind]
            details = f"each {kind} of an operator"
        number = len(taken) if kind is not None else len(profile.rules)
        included = "".join(f", with {name}" for name in values(profile.clauses, "includes"))
        lines.append(f"  {profile.name:<18} {number:>4} rules: {details}{included}")
    return lines
