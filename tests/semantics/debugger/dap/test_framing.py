from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sonnx.semantics.debugger.dap.messages import Malformed, encoded, messages
from tables import table

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MESSAGE = st.dictionaries(st.text(max_size=5), JSON, max_size=3)


def reader(data: bytes, sizes: list[int]) -> Callable[[int], bytes]:
    """Gives the bytes in pieces of these sizes, then of one byte."""
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    left = [*(piece for piece in pieces if piece), *(data[i : i + 1] for i in range(len(data)))]
    return lambda _count: left.pop(0) if left else b""


def utf8(message: object) -> bytes:
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@given(st.lists(MESSAGE, max_size=4), st.lists(st.integers(1, 60), max_size=8))
def test_messages_survive_any_split_and_any_joining(sent: list[dict[str, object]], sizes: list[int]) -> None:
    stream = b"".join(encoded(message) for message in sent)  # type: ignore[arg-type]
    assert list(messages(reader(stream, sizes))) == sent


@pytest.mark.parametrize("text", ["ü", "名前", "\U0001f600", "e\u0301", "\u202e"])
def test_the_length_counts_bytes_of_utf_8(text: str) -> None:
    stream = utf8({"name": text}) + utf8({"next": 1})
    assert list(messages(reader(stream, [1, 5, 30]))) == [{"name": text}, {"next": 1}]


def test_a_length_that_counts_characters_is_not_written() -> None:
    data = encoded({"name": "名\ud800"})
    head, _, body = data.partition(b"\r\n\r\n")
    assert int(head.split(b":")[1]) == len(body) and body.isascii()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_json_does_not_have_is_never_written(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encoded({"value": value})


@table("body", [b"{", b"[1]", b"3", b"\xff{}", b'{"a": NaN}', b"[" * 5000, b'{"a":' + b"9" * 5000 + b"}"])
def test_a_body_that_is_no_message_is_data_and_the_next_one_is_read(body: bytes) -> None:
    stream = b"Content-Length: %d\r\n\r\n%b" % (len(body), body) + utf8({"next": 1})
    bad, good = messages(reader(stream, []))
    assert isinstance(bad, Malformed) and not bad.last
    assert good == {"next": 1}


@table(
    "head",
    [
        b"Content-Length: -1\r\n\r\n{}",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: 2x\r\n\r\n{}",
        b"Length: 2\r\n\r\n{}",
        b"\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: 99999999999\r\n\r\n{}",
        b"x" * 10_000,
        b"Content-Length: 10\r\n\r\n{}",
        b"Content-Len",
    ],
)
def test_a_header_that_says_no_length_ends_the_stream(head: bytes) -> None:
    found = list(messages(reader(head, [7])))
    assert len(found) == 1 and isinstance(found[0], Malformed) and found[0].last


def test_other_header_fields_are_passed_over() -> None:
    stream = b"Content-Type: application/json\r\ncontent-length:2 \r\n\r\n{}"
    assert list(messages(reader(stream, []))) == [{}]


@given(st.binary(max_size=300), st.lists(st.integers(1, 50), max_size=5))
def test_no_bytes_raise(data: bytes, sizes: list[int]) -> None:
    list(messages(reader(data, sizes)))
    list(messages(reader(b"Content-Length: 3\r\n\r\n" + data, sizes)))
