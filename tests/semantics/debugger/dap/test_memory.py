"""Bytes of tensors and of M: what is read, what cannot be, what is written."""

from __future__ import annotations

import base64

import numpy as np
import onnx
import onnx.parser
import pytest
from dap_client import Client, Json

PACKED = """<ir_version: 10, opset_import: ["" : 21]>
packed (float[5] x) => (int4[5] i, float16[5] h, bool[5] b, seq(float[5]) q) {
  i = Cast <to = 22> (x)
  h = Cast <to = 10> (x)
  b = Less (x, x)
  q = SequenceConstruct (x)
}"""


def read(client: Client, reference: str, count: int, offset: int = 0) -> tuple[bytes, int, int]:
    """The bytes, how many could not be read, the address."""
    body = client.request("readMemory", {"memoryReference": reference, "offset": offset, "count": count})
    data = base64.b64decode(body.get("data", ""), validate=True)
    return data, body.get("unreadableBytes", 0), int(body["address"], 16)


def written(client: Client, reference: str, data: bytes, **more: object) -> Json:
    return client.request(
        "writeMemory", {"memoryReference": reference, "data": base64.b64encode(data).decode(), **more}
    )


def test_bytes_are_those_of_raw_data(client: Client, tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    onnx.save(onnx.parser.parse_model(PACKED), folder / "packed.onnx")
    x = np.array([1, -2, 3, 7, -8], np.float32)
    np.save(folder / "x.npy", x)
    client.begin({"model": str(folder / "packed.onnx"), "inputs": [f"x={folder / 'x.npy'}"]})
    assert read(client, client.evaluate("i", "watch")["memoryReference"], 3)[:2] == (bytes((0xE1, 0x73, 0x08)), 0)
    assert read(client, client.evaluate("h", "watch")["memoryReference"], 10)[0] == x.astype("<f2").tobytes()
    assert read(client, client.evaluate("b", "watch")["memoryReference"], 9)[:2] == (bytes(5), 4)
    sequence = read(client, client.evaluate("q", "watch")["memoryReference"], 1000)[0]
    assert x.astype("<f4").tobytes() in sequence
    client.end()


@pytest.mark.parametrize(
    ("offset", "count", "first", "size", "missing"),
    [(-5, 3, 0, 0, 3), (-5, 100, 0, 0, 5), (0, 8, 0, 8, 0), (3, 2, 3, 2, 0), (6, 10, 6, 2, 8), (8, 1, 0, 0, 1),
     (1 << 30, 4, 0, 0, 4), (0, 0, 0, 0, 0)],
)  # fmt: skip
def test_what_lies_outside_of_a_tensor_cannot_be_read(
    client: Client, nested: Json, offset: int, count: int, first: int, size: int, missing: int
) -> None:
    client.begin(nested)
    content = np.array([1, -2], "<f4").tobytes()
    reference = client.evaluate("x", "watch")["memoryReference"]
    address = read(client, reference, 1)[2]
    found = read(client, reference, count, offset)
    assert found[:2] == (content[first : first + size], missing) and found[2] == max(address + offset, 0)
    client.end()


def test_a_reference_means_the_same_bytes_wherever_the_execution_goes(client: Client, nested: Json) -> None:
    client.begin(nested)
    seen: dict[str, bytes] = {}
    for _ in range(12):
        client.move("stepIn")
        shown = client.variables(client.scopes()["Tensors"]["variablesReference"]).values()
        for reference in [it["memoryReference"] for it in shown]:
            seen[reference] = read(client, reference, 64)[0]
    client.move("reverseContinue")
    for reference, content in seen.items():
        assert read(client, reference, 64)[0] == content
    assert len({content for reference, content in seen.items() if reference.endswith('/"s"')}) <= 3
    client.end()


def test_all_of_m_can_be_read_and_what_was_never_written_is_left_out(client: Client, nested: Json) -> None:
    client.begin(nested)
    everything = client.variables(client.scopes()["Machine"]["variablesReference"])["M"]["memoryReference"]
    x = client.evaluate("x", "watch")["memoryReference"]
    data, _, address = read(client, x, 8)
    assert read(client, everything, 8, address)[0] == data
    first, missing, _ = read(client, everything, 64, address)
    assert first == data and missing == 56
    client.end()


@pytest.mark.parametrize(
    "reference", ["", "0", "x", "0:", '0:/"no"', "-1:M", "1000000:M", "0:/0:Add", "٣:M", "9" * 40 + ":M"]
)
def test_what_is_no_reference_is_refused(client: Client, nested: Json, reference: str) -> None:
    client.begin(nested)
    assert client.refused("readMemory", {"memoryReference": reference, "count": 4})
    assert client.refused("readMemory", {"memoryReference": "0:M", "count": 1 << 30})
    client.end()


def test_bytes_that_are_written_make_a_timeline(client: Client, nested: Json) -> None:
    client.begin({**nested, "allowEdits": True})
    reference = client.evaluate("x", "watch")["memoryReference"]
    assert written(client, reference, np.array([8], "<f4").tobytes(), offset=4) == {"bytesWritten": 4}
    assert client.event("memory", memoryReference=reference, offset=4, count=4)
    assert client.event("invalidated")
    assert client.evaluate("x", "watch")["result"] == "float[2] [1.0, 8.0]"
    assert read(client, reference, 8)[0] == np.array([1, 8], "<f4").tobytes()
    assert "(edited)" in client.frames()[0]["name"]
    client.move("next")
    assert client.evaluate("a", "watch")["result"] == "float[2] [2.0, 16.0]"
    assert "go there" in client.refused("writeMemory", {"memoryReference": reference, "data": "AAAA"})
    client.evaluate("timeline 0")
    client.stopped()
    assert client.evaluate("x", "watch")["result"] == "float[2] [1.0, -2.0]"
    client.end()


def test_bytes_outside_of_the_tensor_are_written_in_part_or_not_at_all(client: Client, nested: Json) -> None:
    client.begin({**nested, "allowEdits": True})
    reference = client.evaluate("x", "watch")["memoryReference"]
    for offset in (-2, 6, 100):
        arguments = {"memoryReference": reference, "offset": offset, "data": base64.b64encode(b"abcd").decode()}
        assert "not all in it" in client.refused("writeMemory", arguments)
    before = read(client, reference, 8)[0]
    assert written(client, reference, b"abcd", offset=-2, allowPartial=True) == {"offset": 0, "bytesWritten": 2}
    assert written(client, reference, b"abcd", offset=6, allowPartial=True) == {"offset": 6, "bytesWritten": 2}
    assert written(client, reference, b"abcd", offset=100, allowPartial=True)["bytesWritten"] == 0
    assert read(client, reference, 8)[0] == b"cd" + before[2:6] + b"ab"
    assert "base64" in client.refused("writeMemory", {"memoryReference": reference, "data": "no base64!"})
    everything = client.variables(client.scopes()["Machine"]["variablesReference"])["M"]["memoryReference"]
    assert "tensor" in client.refused("writeMemory", {"memoryReference": everything, "data": "AAAA"})
    client.end()
