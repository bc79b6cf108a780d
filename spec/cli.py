"""The `sonnx` command: a frame around the subcommands that each layer brings through the entry points `sonnx.commands`.

A subcommand is imported when it is called. Exit codes of all commands: 0 good, 1 finding, 2 usage or unreadable input,
3 undecided, 4 internal error, 130 interrupted, 143 terminated. The name of an expected exception's class decides its
code, since the layers above define their own; any other exception is an internal error. A command whose reader goes
away in the middle ends with 141, as the signal would.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import NoReturn

import rich_click as click
from click.exceptions import Exit

from .project import settings
from .terminal import inert

GOOD, FINDING, USAGE, UNDECIDED, INTERNAL, INTERRUPTED, NO_READER, TERMINATED = 0, 1, 2, 3, 4, 130, 141, 143

EXIT_CODES = {
    **dict.fromkeys(
        ("AdditionError", "AddedTextError", "ModelError", "RuleSetError", "MissingExtraError", "SettingsError"), USAGE
    ),
    "Unsupported": UNDECIDED,
}
"""The exit code for each class of expected errors. A SpecError that gets here is a defect of the package's text."""

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""The numbers of errors with which a disk refuses what is written to it."""

TRACEBACK = "SONNX_TRACEBACK"
COMPLETION = "_SONNX_COMPLETE"
"""In the environment `bash_source`, `zsh_source` or `fish_source` for the script that lets a shell complete, and what
that script asks when it is used."""


class Commands(click.RichGroup):
    """The group of the subcommands that the installed layers declare."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, sorted."""
        return sorted(_entry_points())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand, imported; None without one of that name."""
        entry = _entry_points().get(cmd_name)
        if entry is None:
            return None
        command = entry.load()
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that the arguments name. An unknown name is a usage error with a suggestion."""
        name = args[0] if args else ""
        if name not in _entry_points() and not name.startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(name, _entry_points(), 1)
            advice = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(self.list_commands(ctx))}"
            raise click.UsageError(f"no command '{inert(name)}': {advice}", ctx)
        return super().resolve_command(ctx, args)


@cache
def _entry_points() -> dict[str, EntryPoint]:
    """The subcommands by name."""
    return {point.name: point for point in entry_points(group="sonnx.commands")}


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sonnx", prog_name="sonnx")
@click.option("--spec", "files", multiple=True, metavar="FILE", help="Add operators and rules of your own; repeatable.")
def sonnx(files: tuple[str, ...]) -> None:
    """The meaning of ONNX graphs, and whether a model keeps to the SONNX safety profile."""
    if files:
        from .project import use

        use(files)


def run(arguments: Sequence[str]) -> int:
    """Runs a command line and returns its exit code; messages go to standard error, one line each."""
    code = _dispatch(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        _drop_output()
        return code if code in (USAGE, INTERNAL) else _failure(error)
    return code


def _dispatch(arguments: Sequence[str]) -> int:
    # Not through click's `main`, for which a reader that went away is exit code 1: a finding.
    try:
        with sonnx.make_context("sonnx", list(arguments), default_map=settings().defaults()) as context:
            outcome: object = sonnx.invoke(context)
    except Exit as end:
        return end.exit_code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else GOOD if end.code is None else _complain(end.code, USAGE)
    except (KeyboardInterrupt, click.Abort) as stop:
        return _complain("terminated" if isinstance(stop, Terminated) else "interrupted", exit_code(stop))
    except BrokenPipeError:
        return NO_READER
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2; its message is the help
            error.show()
            return USAGE
        place = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "sonnx"
        return _complain(f"error: {error.format_message()} (see {place} --help)", USAGE)
    except Exception as error:
        return _failure(error)
    return outcome if isinstance(outcome, int) else GOOD


def _failure(error: Exception) -> int:
    """The exit code for an exception that a command let through, after its message was printed."""
    if os.environ.get(TRACEBACK):
        import traceback

        sys.stderr.write(inert(traceback.format_exc()))
    code = next((EXIT_CODES[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in EXIT_CODES), INTERNAL)
    if code != INTERNAL:
        return _complain(f"error: {error}", code)
    if isinstance(error, OSError) and error.filename is not None:
        return _complain(f"error: {error.filename}: {error.strerror}", USAGE)
    if isinstance(error, OSError) and error.errno in UNWRITABLE:
        return _complain(f"error: the output cannot be written: {error.strerror}", USAGE)
    hint = "" if os.environ.get(TRACEBACK) else f" (a defect of sonnx: {TRACEBACK}=1 shows the traceback to report)"
    return _complain(f"internal error: {type(error).__name__}: {error}{hint}", INTERNAL)


def _complain(message: object, code: int) -> int:
    start = "\n" if code == INTERRUPTED and sys.stderr.isatty() else ""  # the terminal has written ^C
    sys.stderr.write(f"{start}{' '.join(inert(str(message)).split())}\n")
    return code


def _drop_output() -> None:
    """The reader went away: what is still buffered goes nowhere, so that closing standard output raises nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)


class Terminated(KeyboardInterrupt):
    """The signal SIGTERM: whoever keeps what is done when the user interrupts keeps it then too."""


def exit_code(stop: BaseException) -> int:
    """The exit code after an interrupt."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def _terminate(main: int, _signal: int, _frame: object) -> NoReturn:
    """Ends the process with that number as an interrupt does; one that was forked from it, at once."""
    if os.getpid() != main:
        os._exit(TERMINATED)
    raise Terminated


def main() -> NoReturn:
    """The console script; of a shell that completes a line, its answer."""
    if wanted := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(sonnx, {}, "sonnx", COMPLETION, wanted))
    signal.signal(signal.SIGTERM, partial(_terminate, os.getpid()))
    sys.exit(run(sys.argv[1:]))
