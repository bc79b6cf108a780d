"""Names in lines of the listing: each with its place, what asks for it, and its value in the run at hand."""

from __future__ import annotations

from dap_client import Client, Json
from dap_listing import at, listed


def values(client: Client, first: int, last: int | None = None) -> list[Json]:
    given = {"line": first} if last is None else {"line": first, "endLine": last}
    return list(client.request("sonnx/values", given)["values"])


def test_at_each_step_each_name_asks_for_the_tensor_of_its_line(client: Client, nested: Json) -> None:
    """Two calls of a function and a call in a body have tensors of one name; a body has them anew in each run."""
    client.begin(nested)
    text = listed(client)
    seen = set[tuple[int, str]]()
    step = 0
    while not text[client.line() - 1].startswith("  return"):
        for it in values(client, 1, len(text)):
            quoted = text[it["line"] - 1][it["column"] - 1 : it["endColumn"] - 1]
            assert quoted == f'"{it["name"]}"'
            if "value" in it and ((it["line"], it["value"]) not in seen or step % 8 == 7):
                seen.add((it["line"], it["value"]))
                answered = client.evaluate(it["expression"], "hover")
                assert answered["result"] == it["value"]
                place = client.request("locations", {"locationReference": answered["valueLocationReference"]})
                assert place["line"] == it["line"] or text[it["line"] - 1].lstrip().startswith("return"), it
        client.move("stepIn")
        step += 1
    runs = sorted(value for line, value in seen if line == at(client, '"s2" = Add'))
    assert runs == ["float[2] [-5.0, -22.0]", "float[2] [-6.0, -20.0]", "float[2] [-7.0, -18.0]"]
    calls = [{value for line, value in seen if text[line - 1].lstrip().startswith(f'"t" = Add("{it}"')} for it in "ab"]
    assert calls == [{"float[2] [4.0, -8.0]"}, {"float[2] [8.0, -16.0]"}]
    assert not [line for line, _ in seen if '"te"' in text[line - 1]]  # of the branch that is not taken
    client.end()


def test_what_has_no_value_yet_and_what_is_read_are_named_without_one(client: Client, nested: Json) -> None:
    client.begin(nested)
    line = at(client, '"a" = Add')
    assert [("value" in it, it["name"]) for it in values(client, line)] == [(False, "a"), (False, "x"), (False, "x")]
    client.move("next")
    assert [it.get("value") for it in values(client, line)] == ["float[2] [2.0, -4.0]", None, None]
    client.end()


def test_lines_that_there_are_not_have_no_names(client: Client, nested: Json) -> None:
    client.begin(nested)
    assert values(client, 0) == values(client, 10**6) == values(client, 9, 3) == values(client, 1, 4) == []
    assert values(client, 1, 2**31 - 1) == values(client, 0, 1000)
    for given in ({}, {"line": "9"}, {"line": -1}, {"line": 1, "endLine": 1.5}, {"line": 1 << 40}):
        assert "\n" not in client.refused("sonnx/values", given)
    client.end()
