"""The picture of a plan: a rectangle for each tensor where it lies and when, readable, and safe to open."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from sonnx.semantics.machine.allocation.picture import picture
from sonnx.semantics.machine.allocation.plan import Allocation, AllocationPlan
from tables import table

SVG = "{http://www.w3.org/2000/svg}"
PLAN = AllocationPlan(
    (
        Allocation(0, 0, 512, -1, 4),
        Allocation(1, 512, 256, 0, 1),
        Allocation(2, 512, 512, 2, 3),
        Allocation(3, 768, 8, 1, 1),
    ),
    1024,
    8,
)
NAMES = {0: "weight", 1: "hidden", 2: "out"}


def drawn(plan: AllocationPlan, names: dict[int, str] = NAMES) -> ElementTree.Element:
    return ElementTree.fromstring(picture(plan, names, "A plan"))


def rectangles(root: ElementTree.Element) -> dict[str, tuple[float, float, float, float]]:
    """(left, right, bottom, top) by name; bottom and top count upwards."""
    found = {}
    for rect in root.iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        if title is not None and title.text is not None:
            x, y, width, height = (float(rect.get(key, "")) for key in ("x", "y", "width", "height"))
            found[title.text.split(":")[0]] = (x, x + width, -y - height, -y)
    return found


def test_every_tensor_is_a_rectangle_in_the_place_of_its_bytes_and_steps() -> None:
    where = rectangles(drawn(PLAN))
    assert set(where) == {"weight", "hidden", "out", "3"}
    left, right, bottom, top = where["weight"]
    step, byte = (right - left) / 6, (top - bottom) / 512
    for name, place in zip(("hidden", "out", "3"), PLAN.allocations[1:], strict=True):
        assert where[name] == pytest.approx(
            (
                left + step * (place.first + 1),
                left + step * (place.last + 2),
                bottom + byte * place.offset,
                bottom + byte * (place.offset + place.size),
            ),
            abs=0.02,
        )


def test_steps_are_counted_as_traces_count_them() -> None:
    titles = [str(it.text) for it in drawn(PLAN).iter(f"{SVG}title")]
    assert [title.rpartition(", ")[2] for title in titles if ":" in title] == [
        "from the start to the end", "from step 1 to step 2", "from step 3 to step 4", "from step 2 to step 2"
    ]  # fmt: skip


def test_rectangles_of_a_good_plan_do_not_overlap() -> None:
    found = list(rectangles(drawn(PLAN)).values())
    for i, (left, right, bottom, top) in enumerate(found):
        for other_left, other_right, other_bottom, other_top in found[i + 1 :]:
            apart = right <= other_left + 0.02 or other_right <= left + 0.02
            assert apart or top <= other_bottom + 0.02 or other_top <= bottom + 0.02


def test_the_picture_says_what_it_shows() -> None:
    texts = " | ".join("".join(text.itertext()) for text in drawn(PLAN).iter(f"{SVG}text"))
    for words in (
        "A plan",
        "4 tensors, N = 1 KiB, alignment 8 bytes",
        "there before the first step",
        "kept to the end",
        "most bytes live at once: 1 KiB (100.0 % of N)",
        "weight",
        "address",
        "step",
        "start",
    ):
        assert words in texts


@table(
    "name",
    [
        "</title></rect><script>alert(1)</script>",
        '" onload="alert(1)',
        "&amp;&#60;",
        "\x00\x1b\n\ud800\uffff",
        "\u202edesrever",
        "]]>",
        "x" * 100_000,
        "é",
    ],
)
def test_names_may_be_hostile(name: str) -> None:
    text = picture(PLAN, dict.fromkeys(range(4), name), title=name)
    root = ElementTree.fromstring(text)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        "svg",
        "title",
        "style",
        "rect",
        "text",
        "path",
    }
    assert not re.search(r"[^\x20-\x7e\n…]", text)
    assert not any(key.startswith("on") for element in root.iter() for key in element.attrib)
    for label in root.iter(f"{SVG}text"):
        assert len("".join(label.itertext())) < 200


@table("total", [0, 1, 7, 1000, 1 << 20, 3 * 10**9, 1 << 60])
@table("steps", [1, 2, 11, 200, 100_000])
def test_axes_have_a_few_round_ticks_at_every_scale(total: int, steps: int) -> None:
    root = drawn(AllocationPlan((Allocation(0, 0, total, 0, steps - 1),), total, 1))
    ticks = [path for path in root.iter(f"{SVG}path") if path.get("class") == "tick"]
    across = sum("H" in path.get("d", "") for path in ticks)
    assert 1 <= across <= 11
    assert 1 <= len(ticks) - across <= 11


def test_a_plan_of_nothing_has_a_picture() -> None:
    assert rectangles(drawn(AllocationPlan((), 0, 64))) == {}
