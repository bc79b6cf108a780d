"""The files that users add to the specification: operators of their own, constraints, rule sets.

They are named, all of them together, by `use` (from Python, and `sonnx --spec FILE`), by the environment variable
SONNX_SPEC (several as in PATH), by `spec` in the table `tool.sonnx` of the nearest pyproject.toml (a path or a list of
paths, relative to that file), and by installed packages through entry points `sonnx.specifications` (a path or a list
of paths). What is added is told apart in every report by its name and digest.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

VARIABLE = "SONNX_SPEC"
GROUP = "sonnx.specifications"


class AdditionError(ValueError):
    """A file that is to be added cannot be read, or a setting does not name files."""


def use(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Adds files for the rest of this process and the processes that it starts. Raises AdditionError, and adds nothing,
    where one of them cannot be read.
    """
    more = [str(Path(path).absolute()) for path in paths]
    for path in more:
        _read(Path(path))
    before = os.environ.get(VARIABLE, "")
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys((*filter(None, before.split(os.pathsep)), *more)))
    texts.cache_clear()


@cache
def texts() -> Mapping[str, str]:
    """The texts that are added, by the path as errors name it. They are read once. Raises AdditionError."""
    return {_shown(path): _read(path) for path in dict.fromkeys(path.absolute() for path in _named())}


def _named() -> Iterator[Path]:
    yield from map(Path, filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)))
    folder = next((it for it in (Path.cwd(), *Path.cwd().parents) if (it / "pyproject.toml").is_file()), None)
    if folder is not None:
        yield from (folder / path for path in _configured(folder / "pyproject.toml"))
    for point in entry_points(group=GROUP):
        yield from map(Path, _listed(point.load(), f"the entry point {point.value} of {GROUP}"))


def _configured(file: Path) -> list[str]:
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []  # a file that is not for sonnx need not be sound
    tool = settings.get("tool", {})
    own = tool.get("sonnx", {}) if isinstance(tool, dict) else {}
    stated = own.get("spec", []) if isinstance(own, dict) else []
    return _listed(stated, f"tool.sonnx.spec in {file}")


def _listed(stated: object, where: str) -> list[str]:
    several = [stated] if isinstance(stated, str | os.PathLike) else stated
    if not isinstance(several, list | tuple) or not all(isinstance(it, str | os.PathLike) for it in several):
        raise AdditionError(f"{where} is a path or a list of paths, not {stated!r}")
    return [os.fspath(it) for it in several]


def _read(path: Path) -> str:
    try:
        text = path.read_bytes().decode()  # as it is, to the line ends: its digest is that of the file
    except OSError as error:
        raise AdditionError(f"{_shown(path)}: {error.strerror}; name a file of the specification language") from None
    except UnicodeDecodeError:
        raise AdditionError(f"{_shown(path)}: no text in UTF-8; name a file of the specification language") from None
    if "\r" in text.replace("\r\n", ""):
        raise AdditionError(f"{_shown(path)}: a carriage return alone ends no line; end lines with a line feed")
    return text


def _shown(path: Path) -> str:
    """The path from where we are, where it lies below; another one in full. It is no name of a file of this package."""
    here = Path.cwd()
    if not path.is_relative_to(here):
        return str(path)
    name = path.relative_to(here)
    return f".{os.sep}{name}" if (Path(__file__).parent / name).exists() else str(name)
