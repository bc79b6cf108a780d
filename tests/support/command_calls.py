"""Commands called within the process."""

from __future__ import annotations

import pytest
from sonnx.spec import cli


def called(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors of `sonnx ARGUMENTS`; no control sequence reaches a pipe."""
    code = cli.run([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    return code, shown.out, shown.err
