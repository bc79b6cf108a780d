"""The additions of a project: its settings, and the files with operators, constraints and rule sets of its own.

Settings stand in the table `tool.sonnx` of pyproject.toml, or in the file sonnx.toml with the same keys.
The nearest of the two from the working folder upwards counts; a pyproject.toml without the table is passed over. Paths
are relative to the folder of the file. What the command line says goes before what stands here. A mistake in the file
is a SettingsError with its line; nothing is ignored.

The files that are added to the specification are named, all of them together, by `use` (from Python, and
`sonnx --spec FILE`), by the environment variable SONNX_SPEC (several as in PATH), by the setting `spec`, and by
installed packages through entry points `sonnx.specifications` (a path or a list of paths). What is added is told apart
in every report by its name and digest.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

VARIABLE = "SONNX_SPEC"
GROUP = "sonnx.specifications"
OWN, SHARED = "sonnx.toml", "pyproject.toml"
KEYS: Final[Mapping[str, str]] = {
    "spec": "paths", "models": "paths", "rules": "texts", "strict": "flag", "others": "flag", "timeout": "number",
    "jobs": "count", "sizes": "sizes", "engines": "texts", "format": "text", "output": "path", "certificate": "path",
    "title": "text", "project": "text", "waivers": "waivers",
}  # fmt: skip
"""Each key, and what kind of value it has."""
WORDS: Final[Mapping[str, str]] = {
    "paths": "a path or a list of paths", "texts": "a text or a list of texts", "flag": "true or false",
    "number": "a number above 0", "count": "an integer from 1", "text": "a text", "path": "a path",
    "sizes": 'a table of sizes: NAME = N or "LOW..HIGH"', "waivers": "tables [[tool.sonnx.waivers]]",
}  # fmt: skip
NEEDED: Final = ("rule", "place", "reason", "who", "until")


class SettingsError(ValueError):
    """A mistake in the file of settings: one line with file, line and what to write."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """A finding that is accepted: of a rule (`RULE`, or `RULESET RULE`), at the places that a pattern fits (`*` and `?`
    stand for any characters), in the models whose path a pattern fits; why, by whom, and up to which day.

    source: the file and line where it stands.
    """

    rule: str
    place: str
    reason: str
    who: str
    until: str
    model: str = "*"
    source: str = ""

    def ended(self, today: date) -> bool:
        """True after its last day."""
        return date.fromisoformat(self.until) < today


@dataclass(frozen=True, slots=True)
class Settings:
    """The values by key, those that are written; file: where they stand, None where there is no file."""

    values: Mapping[str, Any]
    waivers: tuple[Waiver, ...] = ()
    file: Path | None = None

    def texts(self, key: str) -> list[str]:
        """The entries of a list; of paths, from the folder of the file."""
        stated = self.values.get(key, [])
        listed = [stated] if isinstance(stated, str) else list(stated)
        return [self.path(it) for it in listed] if KEYS[key] == "paths" else listed

    def path(self, text: str) -> str:
        """A path of the file, from the working folder where it lies below it."""
        full = (Path.cwd() if self.file is None else self.file.parent) / text
        return str(full.relative_to(Path.cwd())) if full.is_relative_to(Path.cwd()) else str(full)

    def beside(self, path: str) -> str:
        """A path from the working folder as the file would name it, where it lies below the folder of the file."""
        full = Path(path).absolute()
        folder = Path.cwd() if self.file is None else self.file.parent
        return full.relative_to(folder).as_posix() if full.is_relative_to(folder) else full.as_posix()

    def defaults(self) -> dict[str, Any]:
        """The options of commands, by command and name as click has them, that the settings give values to."""
        common = {name: self.values[name] for name in ("strict", "others", "timeout", "jobs") if name in self.values}
        named = {name: self.path(self.values[name]) for name in ("output", "certificate") if name in self.values}
        listed = {name: self.texts(name) for name in ("models", "rules") if name in self.values}
        sizes = [f"{name}={value}" for name, value in self.values.get("sizes", {}).items()]
        listed |= {name: self.values[name] for name in ("title", "project") if name in self.values}
        form = {"form": self.values["format"]} if "format" in self.values else {}
        engines = {"engines": self.texts("engines")} if "engines" in self.values else {}
        judged = {**common, **named, **listed, **form, **({"sizes": sizes} if sizes else {})}
        return {"certify": judged, **dict.fromkeys(("compare", "conform"), engines)}


def settings() -> Settings:
    """The settings that hold in the working folder. Raises SettingsError."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        own, shared = folder / OWN, folder / SHARED
        table = _table(shared) if shared.is_file() else None
        if own.is_file():
            if table is not None:
                raise SettingsError(f"{own}: {SHARED} beside it has the table tool.sonnx too; keep one of them")
            return read(own)
        if table is not None:
            return read(shared)
    return Settings({})


def read(file: Path) -> Settings:
    """The settings of a file. Raises SettingsError."""
    try:
        text = file.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from None
    except ValueError as error:  # of TOML, with its line, or of UTF-8
        raise SettingsError(f"{file}: {error}") from None
    table = content if file.name != SHARED else content.get("tool", {}).get("sonnx", {})
    return Settings(*_checked(table, file, text.splitlines()), file)


def _table(file: Path) -> object:
    """The table `tool.sonnx` of a pyproject.toml, None without one; a file that is not sound is somebody else's matter
    unless it names the table."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    if not re.search(r"\bsonnx\b", text):
        return None
    try:
        tool = tomllib.loads(text).get("tool")
    except ValueError as error:
        raise SettingsError(f"{file}: {error}") from None
    return tool.get("sonnx") if isinstance(tool, dict) else None


# ---- What may be written -------------------------------------------------------------------------


def _checked(table: object, file: Path, lines: Sequence[str]) -> tuple[dict[str, Any], tuple[Waiver, ...]]:
    if not isinstance(table, dict):
        raise SettingsError(f"{file}: tool.sonnx is a table")
    values: dict[str, Any] = {}
    for key, value in table.items():
        place = f"{file}:{_line(lines, key)}"
        if key not in KEYS:
            raise SettingsError(f"{place}: there is no setting {key!r}; there are {', '.join(sorted(KEYS))}")
        if not _fits(KEYS[key], value):
            raise SettingsError(f"{place}: {key} is {WORDS[KEYS[key]]}, not {_spelled(value)}")
        values[key] = value
    stated = values.pop("waivers", [])
    return values, tuple(_waiver(it, k, file, lines) for k, it in enumerate(stated))


def _fits(kind: str, value: object) -> bool:
    match kind, value:
        case (("paths" | "texts"), list()):
            return all(isinstance(it, str) and it for it in value)
        case (("paths" | "texts" | "text" | "path"), str()):
            return bool(value)
        case "flag", bool():
            return True
        case "number", int() | float():
            return not isinstance(value, bool) and value > 0
        case "count", int():
            return not isinstance(value, bool) and value > 0
        case "sizes", dict():
            return all(re.fullmatch(r"\d+|\d+\.\.\d*", str(it)) and not isinstance(it, bool) for it in value.values())
        case "waivers", list():
            return all(isinstance(it, dict) for it in value)
    return False


def _waiver(stated: Mapping[str, object], position: int, file: Path, lines: Sequence[str]) -> Waiver:
    at = list(_entries(lines))
    start = at[position] if position < len(at) else _line(lines, "waivers")
    end = at[position + 1] - 1 if position + 1 < len(at) else len(lines)

    def mistake(key: str, text: str) -> SettingsError:
        return SettingsError(f"{file}:{_line(lines, key, start, end)}: the waiver {text}")

    for key in stated.keys() - {*NEEDED, "model"}:
        raise mistake(key, f"has no key {key!r}; it has {', '.join(NEEDED)} and model")
    for key in NEEDED:
        if key not in stated:
            raise mistake(key, f"does not say its {key}; it says {', '.join(NEEDED)}")
    fields = {key: value.isoformat() if type(value) is date else value for key, value in stated.items()}
    for key, value in fields.items():
        if not isinstance(value, str) or not value.strip():
            raise mistake(key, f"says no text as its {key}")
    texts = {key: str(value) for key, value in fields.items()}
    try:
        date.fromisoformat(texts["until"])
    except ValueError:
        raise mistake("until", f"says {texts['until']!r} as its until; write a day as 2027-01-31") from None
    return Waiver(**texts, source=f"{file.name}:{start}")


def _entries(lines: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines where a waiver begins."""
    for number, line in enumerate(lines, 1):
        if re.match(r"\s*\[\[\s*(tool\s*\.\s*sonnx\s*\.\s*)?waivers\s*\]\]", line):
            yield number


def _line(lines: Sequence[str], key: str, start: int = 1, end: int | None = None) -> int:
    """The number of the line where a key is written, of the first of these lines where it is not found."""
    written = re.compile(rf"\s*(\[+[^\]]*\b)?[\"']?{re.escape(key)}[\"']?\s*(=|\]|\.)")
    numbers = (n for n in range(start, (end or len(lines)) + 1) if written.match(lines[n - 1]))
    return next(numbers, start)


def _spelled(value: object) -> str:
    return repr(value) if len(repr(value)) < 40 else f"{repr(value)[:40]}..."


# ---- Files that are added to the specification ----------------------------------------------------


class AdditionError(ValueError):
    """A file that is to be added cannot be read, or a setting does not name files."""


_used: list[str] = []
"""The paths that `use` put into the environment variable, which may name others besides."""


def use(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Adds files, in place of those of an earlier call, for this process and the processes that it starts. Raises
    AdditionError, and changes nothing, where one of them cannot be read.
    """
    more = [str(Path(path).absolute()) for path in paths]
    for path in more:
        _read(Path(path))
    kept = [it for it in os.environ.get(VARIABLE, "").split(os.pathsep) if it and it not in _used]
    _used[:] = [it for it in more if it not in kept]
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys((*kept, *more)))
    texts.cache_clear()


@cache
def texts() -> Mapping[str, str]:
    """The texts that are added, by the path as errors name it. They are read once. Raises AdditionError."""
    return {_shown(path): _read(path) for path in files()}


def files() -> tuple[Path, ...]:
    """The files that are added, each once. Raises AdditionError and SettingsError."""
    return tuple(dict.fromkeys(path.absolute() for path in _named()))


def _named() -> Iterator[Path]:
    yield from map(Path, filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)))
    yield from map(Path, settings().texts("spec"))
    for point in entry_points(group=GROUP):
        yield from map(Path, _listed(point.load(), f"the entry point {point.value} of {GROUP}"))


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
