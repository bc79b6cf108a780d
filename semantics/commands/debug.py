"""`sonnx debug`: step through the execution of a model, forwards and backwards."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from . import options

if TYPE_CHECKING:
    from ..machine.schedule import Schedule

_SETTINGS = Path("~/.sonnxrc")


@click.command()
@click.argument("model", type=options.PATH)
@options.input_option
@options.random_option
@options.size_option
@click.option("--engine", type=click.Choice(["machine"]), default="machine", help="What runs the model.")
@options.schedule_option
@options.allocation_option
@click.option(
    "-x", "--script", "scripts", type=options.PATH, multiple=True, metavar="FILE", help="Commands, one on a line."
)
@click.option("-e", "--ex", "commands", multiple=True, metavar="COMMAND", help="A command; repeatable, after scripts.")
@click.option(
    "--against", metavar="WHAT", help="What to compare with: FILE.npz, a trace with values, an engine, another model."
)
@click.option(
    "--map", "maps", multiple=True, metavar="THEIRS=OURS", help="Names in --against, or a file of them; repeatable."
)
@click.option("--tolerance", metavar="T", help="1e-3, 0.5% or 4ulp, in place of the bound of the definition.")
@click.option(
    "--supply",
    "supplied",
    multiple=True,
    metavar="NAME=FILE|EXPR",
    help="Values for a tensor, or a node with one output, each time its node comes, in place of a meaning; repeatable.",
)
@click.option("--through", metavar="ENGINE", help="An engine that computes each node without a meaning.")
@click.option("--allow-py", "python", is_flag=True, help="Let `py` of scripts, pipes and aliases run Python too.")
@click.option("--batch", is_flag=True, help="End after the scripts and commands.")
@click.option("--no-rc", is_flag=True, help="Pass over ~/.sonnxrc, whose lines a session at a terminal begins with.")
@click.option("--tui", is_flag=True, help="Show the session on the full screen. Needs the extra [tui].")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON for each answer.")
@options.max_memory_option
@options.max_steps_option
def debug(
    model: Path,
    inputs: tuple[str, ...],
    seed: int | None,
    sizes: dict[str, int],
    engine: str,
    schedule: Schedule,
    allocation: str,
    scripts: tuple[Path, ...],
    commands: tuple[str, ...],
    against: str | None,
    maps: tuple[str, ...],
    tolerance: str | None,
    supplied: tuple[str, ...],
    through: str | None,
    python: bool,
    batch: bool,
    no_rc: bool,
    tui: bool,
    as_json: bool,
    max_memory: int | None,
    max_steps: int | None,
) -> None:
    """Step through the execution of MODEL, forwards and backwards, and ask where a value comes from.

    `help` shows the commands; `graph FILE.html` draws the model with the values of the step. Lines are read from the
    terminal or a pipe once the scripts are done.
    At an operator without a meaning the run is stuck: `supply` and `through` go past it, with values from outside.
    With --tui scripts and commands run on the full screen; one that is refused ends them, and the session goes on.
    Exit code: 0 done, 1 a catch was met or the run got stuck, 2 a command was refused, unreadable input or usage.

    \b
    Examples:
      sonnx debug model.onnx --input image=image.npy --supply boxes=boxes.npy -x script.txt --batch
      sonnx debug model.onnx --random 1 --against healthy.onnx -e first-diff --batch
    """
    from ..debugger.repl import batch as run_batch
    from ..debugger.repl import interactive, settings
    from ..debugger.session.opening import opened
    from ..resources.process import memory_budget

    if tui:
        _check_screen(batch=batch, as_json=as_json)
    if against is None and (maps or tolerance is not None):
        raise click.UsageError("--map and --tolerance are for --against: give it too")
    lines = [f"supply every {' '.join(supplied)}"] if supplied else []
    lines += [] if through is None else [f"through every {_word(through)}"]
    lines += [] if against is None else [_compared(against, maps, tolerance)]
    lines += [line for script in scripts for line in _lines(script)]
    budget = memory_budget(max_memory)
    options.check_sizes(sizes, seed)
    reuse = allocation == "arena"
    session = opened(model, inputs, seed, schedule, sizes=sizes, reuse=reuse, budget=budget, limit=max_steps)
    if tui:
        from ..debugger.tui.face import run_face

        script = [*((line, False) for line in lines), *((line, True) for line in commands)]
        sys.exit(run_face(replace(session, python=python), script, None if no_rc else _SETTINGS.expanduser()))
    write = sys.stdout.write
    if not (batch or no_rc) and sys.stdin.isatty():
        session = settings(session, _SETTINGS.expanduser(), write)
    session = replace(session, python=python)
    session, code, over = run_batch(session, lines, write, json=as_json)
    if not over and code != 2:
        session, after, over = run_batch(session, commands, write, json=as_json, typed=True)
        code = max(code, after)
    if not (batch or over or code == 2):
        code = max(code, interactive(session, write, json=as_json))
    sys.exit(code)


def _check_screen(*, batch: bool, as_json: bool) -> None:
    """Refuse a full screen where there is none, or none is wanted."""
    from ..debugger.tui import check_installed

    if batch or as_json:
        raise click.UsageError(f"--tui shows a session to a person: leave out {'--batch' if batch else '--json'}")
    check_installed()
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("--tui needs a terminal: standard input or output is none")


def _compared(against: str, maps: tuple[str, ...], tolerance: str | None) -> str:
    """The command that says what the options say."""
    said = [f"against {_word(against)}", *(f"map {_word(it)}" for it in maps)]
    return " ".join(said if tolerance is None else [*said, f"tolerance {_word(tolerance)}"])


def _word(text: str) -> str:
    """A text as one word of a command line."""
    mark = '"' if "'" in text else "'"
    return f"{mark}{text}{mark}"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise click.UsageError(f"{str(path)!r} is no text in UTF-8") from None
