"""Nothing that the kernel did not make is a theorem, whatever is tried; `python -O` changes nothing."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from sonnx.proofs import kernel
from sonnx.proofs.kernel import Forged, Refused, Theorem
from sonnx.proofs.theory import Theory
from sonnx.spec.library import build, read_texts, specification

THEORY = Theory(specification())


def proved() -> Theorem:
    made = kernel.smt(THEORY, "FiringUses")
    if isinstance(made, Refused):
        raise TypeError(made.reason)
    return made


def bare() -> Theorem:
    return object.__new__(Theorem)


def look_alike() -> Theorem:
    made = object.__new__(Theorem)
    for name in ("name", "rule", "obligations", "digest"):
        object.__setattr__(made, name, getattr(proved(), name))
    return made


def changed(field: str, value: object) -> Theorem:
    made = proved()
    object.__setattr__(made, field, value)
    return made


def another_class() -> object:
    class Theorem:
        name, rule, obligations, digest = "FiringUses", "smt", (), THEORY.digest()

    return Theorem()


@pytest.mark.parametrize(
    "forge",
    [
        bare,
        look_alike,
        lambda: changed("name", "Determinism"),
        lambda: changed("obligations", ()),
        lambda: changed("digest", "0"),
        another_class,
        lambda: None,
    ],
    ids=["bare", "look-alike", "name", "obligations", "digest", "class", "none"],
)
def test_a_forged_theorem_is_recognised(forge: Callable[[], object]) -> None:
    with pytest.raises(Forged):
        kernel.genuine(THEORY, forge())


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: Theorem(),
        lambda: Theorem("Determinism", "smt", ()),
        lambda: type("Mine", (Theorem,), {}),
        lambda: setattr(proved(), "name", "Determinism"),
        lambda: delattr(proved(), "name"),
        lambda: pickle.dumps(proved()),
        lambda: copy.copy(proved()),
        lambda: copy.deepcopy(proved()),
    ],
    ids=["call", "arguments", "subclass", "setattr", "delattr", "pickle", "copy", "deepcopy"],
)
def test_a_theorem_is_not_made_changed_or_copied(attempt: Callable[[], object]) -> None:
    with pytest.raises(Forged):
        attempt()


def test_the_dataclass_tools_do_not_apply_to_theorems() -> None:
    with pytest.raises(TypeError):
        replace(proved(), name="Determinism")  # type: ignore[type-var]


def test_changing_the_symbols_of_an_obligation_changes_the_theorem() -> None:
    made = proved()
    symbols = made.obligations[0].symbols
    if not isinstance(symbols, dict):
        raise TypeError("the symbols are no dictionary")
    symbols.clear()
    with pytest.raises(Forged):
        kernel.genuine(THEORY, made)


def test_a_theorem_of_another_text_is_none_of_this_one() -> None:
    texts = read_texts()
    name = "3-execution.sonnx"
    other = Theory(
        build(
            {**texts, name: texts[name].replace("  if enabled(n, M)\n  let W = {t |-> value", "  let W = {t |-> value")}
        )
    )
    made = kernel.smt(other, "SameStart")
    assert isinstance(made, Theorem)
    assert kernel.genuine(other, made) is made
    with pytest.raises(Forged, match="another text"):
        kernel.genuine(THEORY, made)


def test_a_theorem_with_other_definitions_closed_is_none_of_this_theory() -> None:
    made = kernel.smt(Theory(THEORY.text, frozenset()), "FiringUses")
    with pytest.raises(Forged, match="another text"):
        kernel.genuine(THEORY, made)


def test_a_text_that_is_changed_afterwards_disowns_its_theorems() -> None:
    functions = dict(THEORY.text.functions)
    theory = Theory(replace(THEORY.text, functions=functions))
    made = kernel.smt(theory, "FiringUses")
    functions["unfired"] = replace(functions["unfired"], body=functions["enabled"].body)
    with pytest.raises(Forged, match="another text"):
        kernel.genuine(theory, made)


def test_a_theorem_of_another_kernel_is_none_of_this_one() -> None:
    import importlib.util

    found = importlib.util.find_spec("sonnx.proofs.kernel")
    if found is None or found.loader is None:
        raise TypeError("there is no kernel")
    second = importlib.util.module_from_spec(found)
    sys.modules["sonnx.proofs.second_kernel"] = second
    try:
        found.loader.exec_module(second)
        theorem = second.smt(THEORY, "FiringUses")
        with pytest.raises(Forged):
            kernel.genuine(THEORY, theorem)
    finally:
        del sys.modules["sonnx.proofs.second_kernel"]


def test_a_proof_without_its_lemmas_is_refused() -> None:
    with pytest.raises(Forged, match="rests on"):
        kernel.smt(THEORY, "Determinism")


def test_a_forged_lemma_proves_nothing() -> None:
    with pytest.raises(Forged):
        kernel.smt(THEORY, "FiresOnce", [changed("name", "Determinism")])


SCRIPT = """
from sonnx.proofs import kernel
from sonnx.proofs.theory import Theory
from sonnx.spec.library import specification
theory = Theory(specification())
made = object.__new__(kernel.Theorem)
for name, value in (("name", "KeepsValues"), ("rule", "smt"), ("obligations", ()), ("digest", theory.digest())):
    object.__setattr__(made, name, value)
for attempt in (lambda: kernel.genuine(theory, made), lambda: kernel.smt(theory, "FiresOnce", [made]),
                lambda: kernel.Theorem(), lambda: kernel.smt(theory, "FiresOnce")):
    try:
        attempt()
    except kernel.Forged:
        print("forged")
print(kernel.smt(theory, "FiringUses"))
"""


def test_optimised_python_recognises_forged_theorems() -> None:
    ran = subprocess.run([sys.executable, "-O", "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout.split("\n")[:5] == ["forged"] * 4 + ["|- FiringUses (smt)"], ran.stderr
