"""What panes show of a tensor is of the run, the write and the edit that it is looked at in, also where it is kept."""

from __future__ import annotations

from debugger_models import answer, nested, text
from sonnx.semantics.debugger.session.session import Session
from sonnx.semantics.debugger.tui.looks import TensorLooks, look, name_of, type_here


def numbers(looks: TensorLooks, found: Session, name: str) -> tuple[str, str]:
    """The least and the greatest element of a tensor of the frame that is looked at."""
    (t,) = [t for t in look(found).tensors if name_of(found, t) == name]
    made = looks.of(found, t)
    return made.least, made.greatest


def test_a_look_that_is_kept_is_the_one_of_the_run_and_of_the_edit() -> None:
    looks = TensorLooks()
    first, _ = answer(nested(), "seek 11")
    second, _ = answer(first, "seek 16")
    edited, _ = answer(second, "set s = 7")
    before, _ = answer(edited, "seek 15")
    for found in (first, second, edited, before, second, edited, first):
        shown = text(found, "print s").partition(" = ")[2].split()
        assert numbers(looks, found, "s") == tuple(f"{it:.3g}" for it in sorted(map(float, shown))), look(found).where
    assert numbers(looks, edited, "s") == ("7", "7") != numbers(looks, before, "s")


def test_tensors_are_those_of_the_frame_and_steps_say_what_they_wrote() -> None:
    found, _ = answer(nested(), "seek 16")
    inner, outer = look(found), look(answer(found, "frame 1")[0])
    assert [name_of(found, t) for t in inner.tensors] == ["i", "go", "s", "go2"]
    assert [name_of(found, t) for t in inner.written] == ["go2"]
    assert {"x", "c", "n", "e"} <= {name_of(found, t) for t in outer.tensors} and not set(outer.tensors) & set(
        inner.tensors
    )
    assert [type_here(outer, t) for t in outer.tensors][:3] == ["float[2]", "bool[]", "int64[]"]
    assert [it.name for it in inner.frames] == ["Loop body [run 1]", 'graph "nested"']
    assert [it.looked_at for it in outer.frames] == [False, True]
