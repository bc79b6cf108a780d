"""Tests in several processes that are forked when all tests are known, and so read them once.

Each process takes the tests of a file, then those of the next file that none has taken, and says what it finds to the
one that has collected them, which reports it.
"""

from __future__ import annotations

import json
import os
import selectors
import traceback
import warnings
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="In how many processes the tests run, file by file.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = session.config.getoption("processes")
    if count < 2 or not hasattr(os, "fork") or session.config.option.collectonly or session.testsfailed:
        return None
    run(session, count)
    return True


def run(session: pytest.Session, count: int) -> None:
    """All tests of the session, in so many processes."""
    groups = [list(group) for _, group in groupby(session.items, lambda item: item.path)]
    places: Any = session.config._tmp_path_factory  # type: ignore[attr-defined]
    place = places.getbasetemp()  # cleared by this process
    waiting, numbers = os.pipe()
    os.write(numbers, b"".join(number.to_bytes(2, "big") for number in range(len(groups))))
    os.close(numbers)
    processes: dict[int, int] = {}
    for number in range(count):
        said, saying = os.pipe()
        process = os.fork()
        if not process:
            for other in (said, *processes):
                os.close(other)
            places._basetemp = place / f"process-{number}"
            places._basetemp.mkdir()
            os._exit(_work(session, groups, waiting, saying))
        os.close(saying)
        processes[said] = process
    os.close(waiting)
    try:
        _listen(session, [*processes])
    finally:
        for said, process in processes.items():
            os.close(said)  # who goes on ends where it says the next thing
            os.waitpid(process, 0)


# ---- A process that tests ---------------------------------------------------------------------


def _work(session: pytest.Session, groups: list[list[pytest.Item]], waiting: int, saying: int) -> int:
    """The tests of one file after the other; the exit code. What was to be done at the end of the process that was
    forked is left to it.
    """
    plugins = session.config.pluginmanager
    plugins.unregister(name="terminalreporter")
    capture: Any = plugins.get_plugin("capturemanager")
    capture.stop_global_capturing()  # into files that the processes would share
    capture.start_global_capturing()
    speaker = Speaker(session.config, saying)
    plugins.register(speaker)
    try:
        tests = _tests(groups, waiting)
        test = next(tests, None)
        while test is not None:
            following = next(tests, None)
            speaker.say("test", test.nodeid)
            session.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            test = following
        speaker.say("end", None)
    except BrokenPipeError:
        return 1
    except BaseException:
        speaker.say("broken", traceback.format_exc())
        return 1
    return 0


def _tests(groups: list[list[pytest.Item]], waiting: int) -> Iterator[pytest.Item]:
    while number := os.read(waiting, 2):
        yield from groups[int.from_bytes(number, "big")]


class Speaker:
    """Says what a process finds, a line each."""

    def __init__(self, config: pytest.Config, saying: int) -> None:
        self.config, self.saying = config, saying

    def say(self, kind: str, what: object) -> None:
        line = memoryview(json.dumps([kind, what]).encode() + b"\n")
        while line:
            line = line[os.write(self.saying, line) :]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.say("report", self.config.hook.pytest_report_to_serializable(config=self.config, report=report))

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        it = warning_message
        self.say("warning", [f"{it.category.__name__}: {it.message}", it.filename, it.lineno, when, nodeid])


# ---- The process that reports -----------------------------------------------------------------


def _listen(session: pytest.Session, said: list[int]) -> None:
    """What the processes say, until each has ended."""
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.showfspath = False  # files are tested side by side
    rest, last = dict.fromkeys(said, b""), dict.fromkeys(said, "no test")
    with selectors.DefaultSelector() as selector:
        for place in said:
            selector.register(place, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                place = key.fd
                read = os.read(place, 1 << 16)
                *lines, rest[place] = (rest[place] + read).split(b"\n")
                for kind, what in map(json.loads, lines):
                    if kind == "test":
                        last[place] = what
                    elif kind == "end":
                        selector.unregister(place)
                        break
                    else:
                        _report(session, kind, what)
                else:
                    if not read:
                        pytest.exit(f"a process ended in {last[place]}", pytest.ExitCode.INTERNAL_ERROR)


def _report(session: pytest.Session, kind: str, what: Any) -> None:
    hook = session.config.hook
    if kind == "report":
        report = hook.pytest_report_from_serializable(config=session.config, data=what)
        if isinstance(report.longrepr, list):
            report.longrepr = tuple(report.longrepr)  # the place of a skip, a list in JSON
        hook.pytest_runtest_logreport(report=report)
        if report.when == "teardown":
            hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
    elif kind == "warning":
        text, file, number, when, nodeid = what
        message = warnings.WarningMessage(UserWarning(text), UserWarning, file, number)
        known = {"warning_message": message, "when": when, "nodeid": nodeid, "location": None}
        hook.pytest_warning_recorded.call_historic(kwargs=known)
    else:
        pytest.exit(what, pytest.ExitCode.INTERNAL_ERROR)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
