"""A whole session as it goes over the wire, written down; SONNX_UPDATE=1 writes it anew."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from dap_client import Client, Json
from dap_listing import at, breaks, source

GOLDEN = Path(__file__).with_name("golden") / "session.txt"
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def plain(found: Any, folder: str) -> Any:
    """A message without what differs from one machine or version to another."""
    if isinstance(found, dict) and "checksums" in found:
        return f"<{found['name']}>"
    if isinstance(found, dict):
        return {key: plain(part, folder) for key, part in found.items()}
    if isinstance(found, list):
        return [plain(part, folder) for part in found]
    return _DIGEST.sub("SHA256", found.replace(folder, "FOLDER")) if isinstance(found, str) else found


def written(client: Client, folder: str) -> str:
    """The messages of the adapter in order, each response below its request."""
    asked = {m["seq"]: m for way, m in client.log if way == ">"}
    lines: list[str] = []
    for message in (plain(m, folder) for way, m in client.log if way == "<"):
        if message["type"] == "event":
            lines.append(f"event {message['event']} {json.dumps(message.get('body'))}")
            continue
        request = plain(asked[message["request_seq"]], folder)
        lines.append(f"> {request['command']} {json.dumps(request.get('arguments'))}")
        lines.append(f"< {json.dumps(message.get('body') if message['success'] else message['message'])}")
    return "".join(f"{line}\n" for line in lines)


def test_a_session_goes_over_the_wire_as_it_is_written_down(client: Client, nested: Json) -> None:
    client.begin(nested)
    branch, inside = at(client, "= If("), at(client, '"s2" = Add')
    breaks(client, branch, {"line": inside, "condition": "i == 1"}, 1)
    client.move("continue")
    scopes = client.scopes()
    client.variables(scopes["Node inputs"]["variablesReference"])
    client.move("continue")
    client.frames()
    client.variables(client.scopes()["Node inputs"]["variablesReference"])
    client.evaluate("s[1] * 2", "watch")
    client.request("readMemory", {"memoryReference": client.evaluate("s", "hover")["memoryReference"], "count": 8})
    client.move("next")
    client.move("stepBack")
    client.evaluate("origin s[0]")
    client.refused("evaluate", {"expression": "nothing", "context": "watch"})
    client.request("setDataBreakpoints", {"breakpoints": [{"dataId": "d", "accessType": "write"}]})
    client.move("reverseContinue")
    breaks(client)
    client.request("setDataBreakpoints", {"breakpoints": []})
    client.move("continue")
    client.request("source", {"source": source(client), "sourceReference": 0})
    client.end()
    found = written(client, str(Path(nested["model"]).parent))
    if os.environ.get("SONNX_UPDATE"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(found, encoding="ascii", newline="\n")
    assert found == GOLDEN.read_text(encoding="ascii")
