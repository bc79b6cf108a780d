"""Pages of the site are sessions that are run, from an empty folder, and say what a reader will see."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pages import Page
from sampling import left
from sonnx.spec.render.site.sessions import Session, Step, recorded, session_page, sessions

PROVIDER = "Write an execution provider"
"""The page that every run of the tests executes; the campaign has all."""
BY_TITLE = {it.title: it for it in sessions()}
SHOWN = {
    "Add your own operator": (
        "com.example::Smooth-1            proved",
        "added   own.sonnx, a text that is not of the specification",
        "model.txt CONFORMS to sonnx.",
        "CONFIRMED",
        "2 steps of the machine",
        "first divergence: numpy:kernels.py at /0:com.example::Smooth",
        '"x"[0, 1] * "w"[0]',
    ),
    "Certify a model, and hand it on": (
        "working-group.onnx VIOLATES sonnx (violated: R1/per-node).\n(exit code 1)",
        "verdict CONFORMS to sonnx, with 1 waiver.",
        "CONFIRMED\n  waiver: R1/per-node at /3:*, until 2099-12-31, by A. Engineer:",
        "REFUTED\n  the model file is not the one that was certified: its SHA-256 differs",
        "its seal does not match",
    ),
    "Find a wrong weight": (
        "2 models: 2 CONFORM",
        'catch: /35:Conv("n35") writes /"r35"[0, 2, 0, 0] = ',
        '"fire6/expand1x1_w_0"[2, 5, 0, 0] * "r34"[0, 5, 0, 0]',
    ),
    "Providers": (
        "MachineExecutionProvider\nNumbaExecutionProvider\nOnnxruntimeExecutionProvider\nNumpyExecutionProvider",
        "MachineExecutionProvider  Softmax-13  /1:Softmax  the operator's text",
        "run by the fast path",
        "every part within what the specification allows",
        "HastyExecutionProvider, Hasty_2 (/2:MatMul to /3:Tanh), tensor",
        "(exit code 1)",
    ),
    "Write an execution provider": (
        "1  SlidingExecutionProvider: 3 nodes in 2 parts",
        "Sliding_0   /0:Neg, /1:com.example::Smooth  it slides windows",
        "/2:Sigmoid: it does not offer to run the node",
        "True",
    ),
}
"""What the recorded output of each page holds, in this order."""


@pytest.mark.parametrize("title", [it if it == PROVIDER else left(it) for it in SHOWN])
def test_a_session_runs_in_an_empty_folder_and_shows_what_the_page_promises(title: str) -> None:
    session = BY_TITLE[title]
    done = recorded(session)
    output = "\n".join(f"{it.output}\n(exit code {it.code})" for it in done)
    position = 0
    for text in SHOWN[title]:
        assert text in output[position:], text
        position = output.index(text, position)
    shown = session_page(session, done)
    page = Page(shown)
    assert (page.wrong, page.open) == ([], [])
    assert shown.count("<pre") == sum(bool(it.file) + bool(it.command) for it in session.steps)


def test_every_session_is_tested_and_short() -> None:
    assert set(BY_TITLE) == set(SHOWN)
    assert all(len(it.steps) <= 12 for it in BY_TITLE.values())


def test_a_wrong_weight_is_found_in_fewer_than_six_commands() -> None:
    commands = [it.command for it in BY_TITLE["Find a wrong weight"].steps if it.command[:1] == ("sonnx",)]
    assert len(commands) + sum(command.count("-e") for command in commands) < 6


def test_a_provider_takes_at_most_60_lines() -> None:
    (module,) = (it.text for it in BY_TITLE[PROVIDER].steps if it.file == "sliding.py")
    assert len(module.strip().splitlines()) <= 60


SMALL = Session(
    "A title",
    "a-title.html",
    (
        Step("Says <this>.", "it.py", "print(1)\nprint(2)\nprint(3)", ("python", "it.py"), 0, 1),
        Step("", "", "", ("sonnx", "nonsense"), 2, None),
    ),
)


def test_a_page_shows_files_commands_and_as_much_output_as_it_says() -> None:
    done = recorded(SMALL)
    shown = session_page(SMALL, done)
    assert "Says &lt;this&gt;." in shown
    assert "$ python it.py\n1\n(2 more lines)" in shown
    assert "(exit code 2)" in shown
    assert (Page(shown).wrong, Page(shown).open) == ([], [])


def test_a_command_that_ends_otherwise_than_the_page_says_is_a_defect() -> None:
    with pytest.raises(RuntimeError, match=r"python it\.py ends with 0, the page says 3"):
        recorded(replace(SMALL, steps=(replace(SMALL.steps[0], code=3),)))
