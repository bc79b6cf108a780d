"""Stepping back after a step gives the same answers, everywhere in a run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import onnx
import pytest
from dap_client import Client, Json
from dap_listing import listed
from random_models import random_model

GIVEN_ONCE = frozenset(("id", "variablesReference", "declarationLocationReference", "valueLocationReference"))


def same(found: Any) -> Any:
    """An answer without the numbers that are never given again."""
    if isinstance(found, dict):
        return {key: same(part) for key, part in found.items() if key not in GIVEN_ONCE}
    return [same(part) for part in found] if isinstance(found, list) else found


def answers(client: Client) -> Any:
    """What an editor shows of a position: frames, and of each frame its scopes with two levels of variables."""
    found: list[Any] = []
    for frame in client.frames():
        found.append(same(frame))
        for name, scope in client.scopes(frame["id"]).items():
            inside = client.variables(scope["variablesReference"], start=0, count=50)
            found.append([name, same(list(inside.values()))])
            for it in list(inside.values())[:3]:
                if it["variablesReference"]:
                    found.append(same(list(client.variables(it["variablesReference"], start=0, count=5).values())))
    return found


def outer(client: Client) -> list[str]:
    """The frames that the execution is in, outermost first: without the calls that begin at this line."""
    frames, text = client.frames(), listed(client)
    line, beginning = frames[0]["line"] - 1, 0
    while line > 0 and text[line - 1].lstrip().startswith("call "):
        line, beginning = line - 1, beginning + 1
    return [it["name"] for it in reversed(frames)][: len(frames) - beginning]


def walk(client: Client, seed: int, steps: int) -> int:
    """Goes on by random moves and tries the round trip at each position; how many held."""
    rng, held = random.Random(seed), 0
    for _ in range(steps):
        before, around = answers(client), outer(client)
        if client.move("next", granularity="instruction")["reason"] != "step":
            break
        client.move("stepBack", granularity="instruction")
        assert answers(client) == before
        client.move("next")
        now = [it["name"] for it in reversed(client.frames())]
        if now[: len(around)] == around:  # else the step left a call or body, which a step back goes over as a whole
            client.move("stepBack")
            assert answers(client) == before
            held += 1
            client.move("stepIn")
        elif rng.random() < 0.3:
            client.move("stepBack")
            client.move("stepIn")
    return held


def test_a_step_back_undoes_a_step_in_calls_branches_and_loops(client: Client, nested: Json) -> None:
    client.begin(nested)
    assert walk(client, 1, 20) > 8
    client.end()


@pytest.mark.parametrize("seed", [3, 27])
def test_a_step_back_undoes_a_step_in_random_models(client: Client, tmp_path: Path, seed: int) -> None:
    onnx.save(random_model(seed)[0], tmp_path / "random.onnx")
    client.begin({"model": str(tmp_path / "random.onnx"), "random": seed, "stopOnEntry": True})
    assert walk(client, seed, 8) > 1
    client.end()


def test_seeking_to_a_step_shows_what_was_shown_on_the_way(client: Client, nested: Json) -> None:
    client.begin(nested)
    seen = [answers(client)]
    for _ in range(25):
        client.move("stepIn")
        seen.append(answers(client))
    for index in random.Random(5).sample(range(26), 6):
        client.evaluate(f"seek {index}")
        client.stopped()
        assert answers(client) == seen[index], index
    client.end()
