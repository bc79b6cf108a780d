"""Options that several commands have, and the checks of what they are given."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from sonnx.spec import project

if TYPE_CHECKING:
    from rich.console import Console

    from ..machine.schedule import Schedule
    from ..model.graph import Model

PATH = click.Path(path_type=Path)
SECONDS = click.FloatRange(min=0, min_open=True)
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def byte_count(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    """A number of bytes: 1000, 64K, 2G."""
    if text is None:
        return None
    digits, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not digits.isdecimal() or unit not in UNITS or len(digits) > 18:
        raise click.BadParameter("give a number of bytes, or one with K, M, G or T behind it")
    return int(digits) * UNITS[unit]


def _named_schedule(_context: click.Context, _parameter: click.Parameter, text: str) -> Schedule:
    from ..machine.schedule import parse_schedule

    schedule = parse_schedule(text)
    if schedule is None:
        raise click.BadParameter("give topological, random:SEED or demand")
    return schedule


input_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help=".npy, .npz, .pb or .json; FILE.npz alone: all; repeatable.",
)
random_option = click.option(
    "--random", "seed", type=click.IntRange(min=0), metavar="SEED", help="Draw the inputs that are not given."
)


def _named_sizes(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for text in texts:
        name, _, digits = text.rpartition("=")
        if not name or not digits.isdecimal() or not digits.isascii() or len(digits) > 15:
            raise click.BadParameter(f"{text!r}: write NAME=N")
        if sizes.setdefault(name, int(digits)) != int(digits):
            raise click.BadParameter(f"{name!r} is given twice")
    return sizes


size_option = click.option(
    "--size",
    "sizes",
    multiple=True,
    callback=_named_sizes,
    metavar="NAME=N",
    help="A size that the model leaves open, for inputs that are drawn; repeatable. [default: 1]",
)


def check_sizes(sizes: dict[str, int], seed: int | None) -> None:
    """Refuse sizes where nothing is drawn that could have them."""
    if sizes and seed is None:
        raise click.UsageError("--size is for inputs that are drawn: give --random SEED too")


provider_option = click.option(
    "--provider",
    "providers",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="An execution provider of the fast path, the most preferred first; repeatable: machine, onnxruntime (extra"
    " [ort]), numba (extra [jit]), numpy (always last), or another installed one. only=NODE, repeatable, limits any of"
    " them to some nodes: paths, names or operators.",
)


def counted(nodes: int, parts: int) -> str:
    """Nodes and parts of a provider in words."""
    words = f"{nodes} node{'' if nodes == 1 else 's'}"
    return words if parts == 1 == nodes else f"{words} in {parts} part{'' if parts == 1 else 's'}"


schedule_option = click.option(
    "--schedule",
    default="topological",
    show_default=True,
    callback=_named_schedule,
    help="topological, random:SEED or demand.",
)
allocation_option = click.option(
    "--allocation", type=click.Choice(["simple", "arena"]), default="simple", show_default=True
)
max_memory_option = click.option(
    "--max-memory",
    callback=byte_count,
    metavar="BYTES",
    help="Greatest size of M. [default: three quarters of all memory]",
)
max_steps_option = click.option("--max-steps", type=click.IntRange(min=0), help="Greatest number of steps.")


def check_writable(*targets: Path | None) -> None:
    """Refuse a file that cannot be written before the work is done."""
    for target in targets:
        if target is not None and (target.is_dir() or not target.absolute().parent.is_dir()):
            raise click.UsageError(f"cannot write {str(target)!r}: name a file in an existing folder")


def check_apart(targets: Sequence[Path | None], *sources: Model | Path) -> None:
    """Refuse to write over a file that is read, those of a model with its external data and those of texts that are
    added, and to write two things to one."""
    models = [it for it in sources if not isinstance(it, Path)]
    read = [*(it for it in sources if isinstance(it, Path)), *project.files()]
    read += [model.folder / it.name for model in models if model.folder is not None for it in model.files]
    taken = {it.resolve() for it in read}
    for target in (it for it in targets if it is not None and (it.is_file() or not it.exists())):
        if target.resolve() in taken or any(target.exists() and target.samefile(it) for it in read if it.exists()):
            raise click.UsageError(f"{str(target)!r} is read, or written already: name another file")
        taken.add(target.resolve())


def write_whole(target: Path, data: bytes) -> None:
    """Writes a file so that it is there as a whole or, when that is interrupted or fails, as it was before."""
    if target.exists() and not target.is_file():
        target.write_bytes(data)  # a device or a pipe
        return
    place = target.resolve()
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)


def deliver(report: str | Callable[[Console], None], output: Path | None) -> None:
    """Writes a text, or what prints itself on a console, to a file or to standard output."""
    if not isinstance(report, str):
        from sonnx.spec.terminal import output_console

        with nullcontext() if output is None else output.open("w", encoding="utf-8") as file:
            report(output_console(file))
    elif output is None:
        click.echo(report, nl=False)
    else:
        output.write_text(report, encoding="utf-8")
