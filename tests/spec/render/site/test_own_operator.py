"""The page "Add your own operator" is a session that is run, from an empty folder, and says what a reader will see."""

from __future__ import annotations

from pages import Page
from sonnx.spec.render.site.own_operator import own_operator_page, recorded

SHOWN = {
    "definedness": "com.example::Smooth-1            proved",
    "certify": "model.txt CONFORMS to sonnx.",
    "recheck": "CONFIRMED",
    "run": "2 steps of the machine",
    "compare": "first divergence: numpy:kernels.py at /0:com.example::Smooth",
    "debug": '"x"[0, 1] * "w"[0]',
}


def test_the_session_of_the_page_runs_in_an_empty_folder_and_shows_what_it_promises() -> None:
    session = recorded()
    done = {it.step.command[2]: it for it in session if it.step.command}
    assert {name: text in done[name].output for name, text in SHOWN.items()} == dict.fromkeys(SHOWN, True)
    assert {name: it.code for name, it in done.items()} == {name: int(name == "compare") for name in SHOWN}
    shown = own_operator_page(session)
    page = Page(shown)
    assert "added   own.sonnx, a text that is not of the specification" in shown
    assert (page.wrong, page.open) == ([], [])
    assert shown.count("<pre") == 3 + len(SHOWN)
    assert len([it for it in session if it.step.says]) <= 20
