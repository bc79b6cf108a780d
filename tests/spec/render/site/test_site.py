"""The site: every page is well formed, loads nothing and leads nowhere else; a small one is known byte for byte."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from pathlib import Path

import pytest
from pages import Page
from sampling import CAMPAIGN
from sonnx.spec import library, parsed
from sonnx.spec.elaborate.schema import Signature
from sonnx.spec.render.site import site
from sonnx.spec.render.site.examples import Example, Executed, Value
from sonnx.spec.render.site.places import operator_page
from texts import few

GOLDEN = Path(__file__).parent / "golden"
REWRITE = "SONNX_UPDATE"
"""Set in the environment: the golden pages are written anew."""


def execute(example: Example, signature: Signature) -> Executed:
    """Instead of an interpretation: the given values doubled, or none for a negative one."""
    given = tuple(Value(name, "float[]", str(value)) for name, value in example.arguments.items())
    if any(str(value).startswith("-") for value in example.arguments.values()):
        return Executed(given, (), f"{example.operator} does not like it.")
    return Executed(given, (Value("Y", "float[]", "4"),))


TEXTS = parsed.read_texts()


@dataclass(frozen=True)
class Site:
    """A site, rendered once. read: the pages, read as HTML."""

    texts: Mapping[str, str]

    @cached_property
    def built(self) -> library.Specification:
        return library.build(self.texts)

    @cached_property
    def pages(self) -> dict[str, str]:
        return site(self.built, self.texts)

    @cached_property
    def read(self) -> dict[str, Page]:
        return {name: Page(text) for name, text in self.pages.items()}


FEW = Site(few() | {name: text for name, text in TEXTS.items() if name.startswith("6-properties/")})
ALL = Site(TEXTS)
SITES = [pytest.param(FEW, id="few"), pytest.param(ALL, id="all", marks=CAMPAIGN)]
"""The site of a few operators and of all that is not one, and the whole one in the campaign."""
of_a_site = pytest.mark.parametrize("made", SITES)


@of_a_site
def test_every_file_and_every_operator_has_a_page(made: Site) -> None:
    titles = re.findall(r"<h1>(.*?)</h1>", "".join(made.pages.values()))
    assert len(titles) == len(made.pages) == len(set(titles))
    assert {operator_page(name) for name in made.built.operators} <= made.pages.keys()
    assert len(made.pages) == 4 + len(made.texts) + len(made.built.operators)


@of_a_site
def test_every_declaration_stands_on_the_site_with_its_sentence(made: Site) -> None:
    text = unescape(re.sub(r"<[^>]*>", "", "".join(made.pages.values())))
    for file in made.built.files.values():
        for declared in file.declarations:
            assert declared.doc.replace("`", "") in text


@of_a_site
def test_every_page_can_be_reached_from_the_entrance(made: Site) -> None:
    reached, waiting = set(), ["index.html"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [a.partition("#")[0] for a in made.read[name].values("href") if not a.startswith("#")]
    assert reached == made.pages.keys()


@of_a_site
def test_pages_are_balanced_and_every_link_has_a_target(made: Site) -> None:
    targets = {name: set(page.values("id")) for name, page in made.read.items()}
    for name, page in made.read.items():
        assert not page.wrong and not page.open, name
        identifiers = list(page.values("id"))
        assert len(identifiers) == len(set(identifiers)), name
        for address in page.values("href"):
            target, _, fragment = address.partition("#")
            assert target in targets, (name, address)
            assert not fragment or fragment in targets[target], (name, address)


@of_a_site
def test_pages_load_nothing_and_run_nothing(made: Site) -> None:
    for name, page in made.read.items():
        tags = page.tags
        assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "object", "form", "base"}, name
        assert not [a for _, attributes in tags for a in attributes if a.startswith("on") or a in ("style", "src")]
        style = re.search(r"<style>(.*?)</style>", made.pages[name], re.DOTALL)
        assert style is not None and "url(" not in style[1] and "@import" not in style[1], name
        digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        assert {"http-equiv": "Content-Security-Policy", "content": policy} in [attributes for _, attributes in tags]
        assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in [a for _, a in tags], name


@of_a_site
def test_what_is_wide_scrolls_in_a_box_of_its_own(made: Site) -> None:
    for name, page in made.read.items():
        depth: list[str] = []
        for match in re.finditer(r"<(/?)(div|details|table|math|pre)\b([^>]*)>", made.pages[name]):
            closing, tag, attributes = match.groups()
            if closing:
                depth.pop()
                continue
            if tag == "math":
                assert any(box in attributes_of for attributes_of in depth for box in ('class="formula"',)), name
            if tag == "table":
                assert any('class="scroll"' in attributes_of for attributes_of in depth), name
            depth.append(attributes)
        assert page.tags


@pytest.mark.parametrize("texts", [pytest.param(few(), id="few"), pytest.param(TEXTS, id="all", marks=CAMPAIGN)])
def test_the_pages_are_the_same_in_every_run(texts: Mapping[str, str]) -> None:
    assert site(library.build(texts), texts) == site(library.build(texts), texts)


# ---- A small specification --------------------------------------------------------------------

SMALL = {
    "2-wellformed.sonnx": """
# Part 2: well-formed graphs. As few as a test needs; `code` is code.
sort Node "A node."
fact nodes(): set Node "The nodes."
# ---- A heading ----
# What stands under it.
define odd(n: Node): Bool "An odd node." = not (n in nodes())
constraint NoOdd "No node is odd." at static: forall n in nodes(): not odd(n)
  violation "{n} is odd"
  suggest "Remove {n}."
  evidence places
""",
    "profiles/sonnx-small.sonnx": """
profile sonnx-small "A rule set." source "Here." {
  rule Relu/R1 "Nothing odd" = NoOdd quote "Nothing odd." status TBC
}
""",
    "primitives.sonnx": TEXTS["primitives.sonnx"].partition("# ---- Execution")[0],
    "5-operators/small.sonnx": """
# Small operators.
define half(x: Rational): Rational "Half of x." = x / 2

operator Relu @ 14 (X: T[d...]) -> Y: T
  "The greater of x and 0, as Relu-6, half of it."
  source "ONNX, Relu-14"
  require no_scalar: len(d) > 0 "X is no scalar."
    demanded SONNX/Relu-R1
  restrict few_axes: len(d) < 9 "X has few axes."
    demanded SONNX/Relu-X-C1
    demanded SONNX/Relu-X-C2
  Y[i... < d] = if X[i] < 0 then 0 else cast(T, half(rational(X[i])))

operator Relu @ 6..13 (X: T[d...]) -> Y: T
  "The greater of x and 0."
  source "ONNX, Relu-6"
  Y[i... < d] = if X[i] < 0 then 0 else X[i]

operator Abs @ 6..13 (X: T[d...]) -> Y: T
  "Through Relu."
  source "ONNX, Abs-6"
  Y = Relu@13(X)
""",
}
EXAMPLES = (Example("Relu", "Doubled.", {"X": {"float": 2}}), Example("Relu", "Twice.", {"X": {"float": 1}}, (6, 13)))


def small() -> dict[str, str]:
    return site(library.build(SMALL), SMALL, EXAMPLES, execute)


@pytest.mark.parametrize("name", ["operator-Relu.html", "operator-Abs.html", "2-wellformed.html", "demands.html"])
def test_the_pages_of_a_small_specification_are_these(name: str) -> None:
    found = re.search(r"<main>.*</main>", small()[name], re.DOTALL)
    assert found is not None
    path = GOLDEN / name
    if REWRITE in os.environ:
        path.write_text(found[0] + "\n", encoding="utf-8")
    assert found[0] + "\n" == path.read_text(encoding="utf-8")


def test_without_a_layer_that_executes_them_no_example_is_shown() -> None:
    shown = small()["operator-Relu.html"]
    assert shown.count("Doubled.") == 2 and shown.count("Twice.") == 1
    assert "Doubled." not in site(library.build(SMALL), SMALL, EXAMPLES)["operator-Relu.html"]


def test_an_applied_operator_is_a_link_to_the_text_that_covers_its_version() -> None:
    assert '<a href="operator-Relu.html#6">Relu-13</a>' in small()["operator-Abs.html"]
    assert '<a href="operator-Abs.html#6">Abs-6</a>' in small()["operator-Relu.html"]


def test_a_requirement_leads_to_the_rule_that_demands_it() -> None:
    address = '<a href="rules-sonnx-small.html#sonnx-small_3a_Relu_2f_R1">SONNX/Relu-R1</a>'
    assert address in small()["operator-Relu.html"]


def test_what_a_theorem_rests_on_and_what_a_finding_names_are_links() -> None:
    page = re.sub(r"\s*\n\s*", "", FEW.pages["properties-4-order.html"])
    (rests,) = re.findall(r'id="Determinism".*?<dt>Rests on</dt><dd>(.*?)</dd>', page)
    assert '<a href="properties-4-order.html#OrderIndependence">OrderIndependence</a>, ' in rests
    assert '<a href="2-wellformed.html#Acyclic">Acyclic</a>, ' in rests
    page = re.sub(r"\s*\n\s*", "", FEW.pages["properties-9b-findings.html"])
    assert '<dt>Does not follow from</dt><dd><a href="2-wellformed.html#SingleAssignment">' in page and "⊬" in page


HOSTILE = '<script>alert(1)</script> & "q" `code` [l](javascript:x) \x1b[31m \u202e --> ]]> <a href="javascript:x">'


def test_hostile_text_stays_text() -> None:
    written = HOSTILE.replace('"', '\\"')
    texts = {
        name: re.sub(r'"(?:The greater|A rule set|No node|Half|X is no|Here)[^"]*"', lambda _: f'"{written}"', text)
        for name, text in SMALL.items()
    }
    texts["2-wellformed.sonnx"] = f"# {HOSTILE}\n# ---- {HOSTILE} ----\n" + texts["2-wellformed.sonnx"]
    examples = (Example("Relu", HOSTILE, {"X": {"float": HOSTILE}}),)
    for text in site(library.build(texts), texts, examples, execute).values():
        page = Page(text)
        assert not page.wrong and not page.open
        assert "script" not in {tag for tag, _ in page.tags}
        assert "\x1b" not in text and "\u202e" not in text
        assert not [address for address in page.values("href") if ":" in address]
