"""A model with an operator of a user: the adapter that was started with its text debugs it, and tells its mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from dap_adapters import COMMAND, spawned
from dap_client import Json, ProtocolError
from own_operators import TEXT, files
from sampling import left


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Json:
    monkeypatch.chdir(tmp_path)
    files(tmp_path)
    return {"model": str(tmp_path / "m.onnx"), "inputs": [f"x={tmp_path / 'x.npy'}"], "stopOnEntry": True}


def adapter(text: str) -> tuple[str, ...]:
    return (*COMMAND[:-1], "--spec", text, COMMAND[-1])


def test_an_operator_of_a_user_is_stepped_and_explained(launch: Json) -> None:
    with spawned(command=adapter("own.sonnx")) as client:
        client.begin(launch)
        client.move("next")
        assert client.evaluate("a")["result"] == "float[1, 3] [[2.5, -5.0, 7.5]]"
        assert "own.sonnx:1:1" in client.evaluate("explain a[0, 1]")["result"]
        client.end()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT.replace("X[i] *", "cast(double, X[i]) *"), "own.sonnx:7:"),
        left(("operator", "own.sonnx:1:")),
        left(("", "Scale")),
    ],
)
def test_a_mistake_in_the_text_is_told_by_the_launch(launch: Json, text: str, said: str) -> None:
    Path("own.sonnx").write_text(text)
    with spawned(command=adapter("own.sonnx")) as client, pytest.raises(ProtocolError, match=said):
        client.begin(launch)
