"""Digests of texts as they stand in their files, by which a second party knows them that has no parser of ours.

Of a declaration its words count, a blank between each two: names, numbers, signs, quoted texts with blanks and line
breaks folded to one; comments do not. A rewrite rests on its own declaration, on the operators that words of it apply,
and on the functions that they name, and so on. CERTIFICATE.md says how the digest is made of these.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from sonnx.spec.parsed import read_texts

_WORD = re.compile(r'#[^\n]*|"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_\']*|[0-9]+(?:\.[0-9]+)?|\S', re.S)
_KINDS = ("operator", "define", "rewrite", "theorem", "lemma")
_OTHERS = ("contract", "fun", "sort", "fact", "profile", "constraint", "inductive", "record", "field", "law", "finding",
           "situation", "rule")  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Written:
    """A declaration: the first word, the name, the versions of an operator (else 0), the words."""

    kind: str
    name: str
    first: int
    last: int
    words: tuple[str, ...]

    @property
    def line(self) -> str:
        """The line that it adds to a digest."""
        name = f"{self.name}@{self.first}" if self.kind == "operator" else self.name
        return f"{self.kind} {name} {_sha256(' '.join(self.words))}"


def rests_on(rule: str) -> str:
    """The digest of all text that a rewrite rests on. Raises KeyError for one that the text does not have."""
    known = _written()
    found: dict[_Written, None] = {}
    waiting = [known["rewrite", rule][0]]
    while waiting:
        it = waiting.pop()
        if it not in found:
            found[it] = None
            waiting += _named(it, known)
    return _sha256("\n".join(sorted(it.line for it in found)))


def theorem(name: str) -> str:
    """The digest of a theorem or a lemma. Raises KeyError for one that the text does not have."""
    known = _written()
    (it, *_) = known.get(("theorem", name)) or known["lemma", name]
    return _sha256(" ".join(it.words))


def _named(it: _Written, known: Mapping[tuple[str, str], list[_Written]]) -> Iterator[_Written]:
    """The functions that a declaration names, and the operators that it applies."""
    words = [word for word in it.words if not word.startswith('"')]
    for word in words:
        yield from known.get(("define", word), ())
    for place, word in enumerate(words[:-1]):
        if word == "@" and words[place + 1].isdigit():
            yield from _at(known, _name_before(words, place), int(words[place + 1]))
        elif word == "like" and words[place + 1].isdigit():
            yield from _at(known, it.name, int(words[place + 1]))


def _name_before(words: list[str], place: int) -> str:
    """The name of an operator in front of its version, with the domain."""
    start = place - 1
    while start >= 2 and words[start - 1] in (":", "."):
        start -= 3 if words[start - 1] == ":" else 2
    return "".join(words[start:place])


def _at(known: Mapping[tuple[str, str], list[_Written]], name: str, version: int) -> Iterator[_Written]:
    yield from (it for it in known.get(("operator", name), ()) if it.first <= version <= it.last)


@cache
def _written() -> Mapping[tuple[str, str], list[_Written]]:
    """The declarations of the parts on operators, theorems and rewrites, by kind and name. A function of the part on
    theorems is none that an operator uses."""
    found: dict[tuple[str, str], list[_Written]] = {}
    for file, text in read_texts().items():
        if not file.startswith(("5-operators/", "6-properties/", "7-transforms/")):
            continue
        for words in _declarations(text):
            kind = words[0]
            if kind in _KINDS and not (kind == "define" and file.startswith("6-")):
                it = _declaration(kind, words)
                found.setdefault((kind, it.name), []).append(it)
    return found


def _declaration(kind: str, words: list[str]) -> _Written:
    if kind != "operator":
        return _Written(kind, words[1], 0, 0, tuple(words))
    place = words.index("@")
    first = int(words[place + 1])
    last = int(words[place + 4]) if words[place + 2 : place + 4] == [".", "."] else first
    return _Written(kind, "".join(words[1:place]), first, last, tuple(words))


def _declarations(text: str) -> Iterator[list[str]]:
    """The words of each declaration; it begins with its first word at the beginning of a line."""
    words: list[str] = []
    for match in _WORD.finditer(text):
        word = match[0]
        if word.startswith("#"):
            continue
        opens = match.start() == 0 or text[match.start() - 1] == "\n"
        if opens and word in (*_KINDS, *_OTHERS):
            if words:
                yield words
            words = []
        words.append(" ".join(word.split()) if word.startswith('"') else word)
    if words:
        yield words


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
