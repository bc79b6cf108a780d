"""The page "Add your own operator" is a session that is run, from an empty folder, and says what a reader will see."""

from __future__ import annotations

import pytest
from pages import Page
from sampling import CAMPAIGN
from sonnx.spec.render.site import own_operator
from sonnx.spec.render.site.own_operator import own_operator_page, recorded

SHOWN = {
    "definedness": "com.example::Smooth-1            proved",
    "certify": "model.txt CONFORMS to sonnx.",
    "recheck": "CONFIRMED",
    "run": "2 steps of the machine",
    "compare": "first divergence: numpy:kernels.py at /0:com.example::Smooth",
    "debug": '"x"[0, 1] * "w"[0]',
}


@pytest.mark.parametrize(
    "commands", [pytest.param(("run", "compare"), id="sample"), pytest.param(tuple(SHOWN), id="all", marks=CAMPAIGN)]
)
def test_the_session_of_the_page_runs_in_an_empty_folder_and_shows_what_it_promises(
    commands: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command is a process of two seconds: two of them, and the whole session in the campaign."""
    steps = tuple(step for step in own_operator.steps() if not step.command or step.command[2] in commands)
    monkeypatch.setattr(own_operator, "steps", lambda: steps)
    session = recorded()
    done = {it.step.command[2]: it for it in session if it.step.command}
    assert {name: SHOWN[name] in it.output for name, it in done.items()} == dict.fromkeys(commands, True)
    assert {name: it.code for name, it in done.items()} == {name: int(name == "compare") for name in commands}
    shown = own_operator_page(session)
    page = Page(shown)
    assert "added   own.sonnx, a text that is not of the specification" in shown or "certify" not in commands
    assert (page.wrong, page.open) == ([], [])
    assert shown.count("<pre") == 3 + len(commands)


def test_the_page_is_short() -> None:
    assert {it.command[2] for it in own_operator.steps() if it.command} == set(SHOWN)
    assert len([it for it in own_operator.steps() if it.says]) <= 20
