"""The listing that a client stands in, and breakpoints on its lines."""

from __future__ import annotations

from pathlib import Path

from dap_client import Client, Json


def listed(client: Client) -> list[str]:
    """The lines of the listing that the frames stand in."""
    return Path(client.frames()[-1]["source"]["path"]).read_text(encoding="ascii").splitlines()


def at(client: Client, part: str) -> int:
    """The number of the first line with this text."""
    return next(i for i, line in enumerate(listed(client), 1) if part in line)


def source(client: Client) -> Json:
    return {"path": client.frames()[-1]["source"]["path"]}


def breaks(client: Client, *wanted: Json | int) -> list[Json]:
    """Sets the breakpoints of the listing; what was answered."""
    asked = [{"line": it} if isinstance(it, int) else it for it in wanted]
    return list(client.request("setBreakpoints", {"source": source(client), "breakpoints": asked})["breakpoints"])


def line_of(client: Client) -> str:
    return listed(client)[client.line() - 1].strip()
