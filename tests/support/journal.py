"""What a long campaign has done, as lines of JSON in a file, so that an interrupted one goes on there."""

from __future__ import annotations

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any


def done(file: Path, key: str) -> dict[Hashable, dict[str, Any]]:
    """The records of a file by one of their fields; a line that was cut off by an interrupt is none."""
    if not file.exists():
        return {}
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    return {record[key]: record for record in map(json.loads, (line for line in lines if line.endswith("\n")))}
