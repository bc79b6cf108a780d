"""A client of the Debug Adapter Protocol for tests, which trusts nothing.

Every message, in both directions, is checked against the protocol's schema (`dap_schema`), and what no schema says is
checked too: frames count bytes, sequence numbers go up by one, each request is answered once, `stopped` never comes
before the response of the request that moved, `launch` is answered after `configurationDone`. What is wrong is raised
by the next call.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from dap_schema import Json, wrong

PATIENCE = 30.0
"""Seconds to wait for a message."""

MOTIONS = frozenset(("continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue", "goto", "restartFrame"))
"""The requests whose `stopped` event comes after their response."""

VSCODE: Json = {
    "clientID": "test",
    "adapterID": "sonnx",
    "linesStartAt1": True,
    "columnsStartAt1": True,
    "pathFormat": "path",
    "supportsVariableType": True,
    "supportsVariablePaging": True,
    "supportsMemoryReferences": True,
    "supportsProgressReporting": True,
    "supportsInvalidatedEvent": True,
    "supportsMemoryEvent": True,
    "supportsStartDebuggingRequest": True,
    "supportsRunInTerminalRequest": True,
    "supportsArgsCanBeInterpretedByShell": True,
    "supportsANSIStyling": True,
    "locale": "en",
}
"""What VS Code says about itself."""


class ProtocolError(Exception):
    """The adapter did what the protocol forbids, refused what it was asked, or was silent."""


@dataclass(frozen=True, slots=True)
class Response:
    """What a request was answered, with its place in the log."""

    success: bool
    message: str
    body: Json
    at: int


@dataclass
class Client:
    """One connection. log: all messages in the order in which they were sent or came, `>` before those sent."""

    write: Callable[[bytes], object]
    read: Callable[[int], bytes]
    close_: Callable[[], None]
    process: subprocess.Popen[bytes] | None = None
    errors: IO[bytes] | None = None
    log: list[tuple[str, Json]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    capabilities: Json = field(default_factory=dict)
    _seq: int = 0
    _theirs: int = 0
    _moving: int = 0  # moves that were answered and did not come to their end
    _open: dict[int, str] = field(default_factory=dict)
    _responses: dict[int, Response] = field(default_factory=dict)
    _events: list[tuple[int, Json]] = field(default_factory=list)
    _arrived: threading.Condition = field(default_factory=threading.Condition)
    _ended: bool = False
    _closed: bool = False

    def __post_init__(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._closed = True
        self.close_()
        if kind is None:
            self.check()

    # ---- Sending ------------------------------------------------------------------------------

    def send(self, command: str, arguments: Json | None = None, *, check: bool = True) -> int:
        """Sends a request and does not wait; the number to ask for its response with. check: that it is valid."""
        seq, content = self.packet(command, arguments, check=check)
        self.write(content)
        return seq

    def packet(self, command: str, arguments: Json | None = None, *, check: bool = True) -> tuple[int, bytes]:
        """The number and the bytes of a request that the caller sends."""
        with self._arrived:
            self._seq += 1
            message: Json = {"seq": self._seq, "type": "request", "command": command}
            if arguments is not None:
                message["arguments"] = arguments
            if check and (found := wrong(message)):
                raise ProtocolError(f"the client itself sends what is wrong: {found}")
            self._open[self._seq] = command
            self.log.append((">", message))
            return self._seq, framed(message)

    def answer(self, seq: int, patience: float = PATIENCE) -> Response:
        """The response to a request that was sent."""
        self._wait(lambda: seq in self._responses, f"no response to request {seq}", patience)
        return self._responses[seq]

    def ask(self, command: str, arguments: Json | None = None, *, check: bool = True) -> Response:
        """The response to a request, whatever it says."""
        return self.answer(self.send(command, arguments, check=check))

    def request(self, command: str, arguments: Json | None = None) -> Json:
        """The body of the response to a request, which must succeed."""
        found = self.ask(command, arguments)
        if not found.success:
            raise ProtocolError(f"{command} is refused: {found.message}: {found.body}")
        return found.body

    def refused(self, command: str, arguments: Json | None = None, *, check: bool = False) -> str:
        """Why a request is refused, which must be; the text that a person sees."""
        found = self.ask(command, arguments, check=check)
        if found.success:
            raise ProtocolError(f"{command} is not refused: {found.body}")
        error = found.body.get("error", {})
        text = str(error.get("format", ""))
        for name, value in error.get("variables", {}).items():
            text = text.replace(f"{{{name}}}", value)
        return text or found.message

    # ---- Events -------------------------------------------------------------------------------

    def event(self, name: str, patience: float = PATIENCE, **body: Any) -> Json:
        """The body of the next event of a name that was not taken yet, with these values in it."""

        def found() -> int | None:
            for i, (_, message) in enumerate(self._events):
                given = message.get("body", {})
                if message["event"] == name and all(given.get(key) == value for key, value in body.items()):
                    return i
            return None

        self._wait(lambda: found() is not None, f"no event {name} {body}", patience)
        with self._arrived:
            at = found()
            if at is None:
                raise ProtocolError(f"the event {name} was taken by another thread")
            return dict(self._events.pop(at)[1].get("body", {}))

    def events(self, name: str) -> list[Json]:
        """The bodies of all events of a name that have come, those taken included."""
        with self._arrived:
            return [m.get("body", {}) for way, m in self.log if way == "<" and m.get("event") == name]

    def stopped(self, patience: float = PATIENCE) -> Json:
        """The body of the next `stopped` event."""
        return self.event("stopped", patience)

    def move(self, command: str, **arguments: Any) -> Json:
        """Sends a request that moves and waits until the execution stands still; the body of `stopped`."""
        self.request(command, {"threadId": 1, **arguments})
        return self.stopped()

    # ---- A session ----------------------------------------------------------------------------

    def begin(
        self,
        launch: Json,
        configure: Callable[[Client], object] = lambda _: None,
        *,
        how: str = "launch",
        says: Json | None = None,
        starts: bool = True,
    ) -> Json:
        """Goes through the start of a session as VS Code does: initialize, launch, initialized, what `configure` sends,
        configurationDone. starts: waits for `stopped`, whose body it gives."""
        self.capabilities = self.request("initialize", {**VSCODE, **(says or {})})
        return self.begin_again(launch, configure, how=how, starts=starts)

    def begin_again(
        self,
        launch: Json,
        configure: Callable[[Client], object] = lambda _: None,
        *,
        how: str = "launch",
        starts: bool = True,
    ) -> Json:
        """The same without `initialize`, which was sent."""
        launched = self.send(how, launch)
        self._wait(
            lambda: launched in self._responses or any(m["event"] == "initialized" for _, m in self._events),
            "neither the event initialized nor a refused launch",
            PATIENCE,
        )
        if launched not in self._responses:
            self.event("initialized")
            configure(self)
            self.request("configurationDone")
        found = self.answer(launched)
        if not found.success:
            raise ProtocolError(f"{how} is refused: {found.message}: {found.body}")
        return self.stopped() if starts else {}

    def frames(self, **arguments: Any) -> list[Json]:
        """The frames of the stack, innermost first."""
        return list(self.request("stackTrace", {"threadId": 1, **arguments})["stackFrames"])

    def line(self) -> int:
        """The line of the innermost frame."""
        return int(self.frames()[0]["line"])

    def scopes(self, frame: int | None = None) -> dict[str, Json]:
        """The scopes of a frame, of the innermost where none is given, by name."""
        frame = self.frames()[0]["id"] if frame is None else frame
        return {scope["name"]: scope for scope in self.request("scopes", {"frameId": frame})["scopes"]}

    def tensors(self) -> dict[str, Json]:
        """The tensors of the main graph."""
        scope = self.scopes(self.frames()[-1]["id"])["Tensors"]
        return self.variables(scope["variablesReference"])

    def variables(self, reference: int, **arguments: Any) -> dict[str, Json]:
        """The variables of a reference by name."""
        body = self.request("variables", {"variablesReference": reference, **arguments})
        found = {it["name"]: it for it in body["variables"]}
        if len(found) != len(body["variables"]):
            raise ProtocolError(f"two variables have one name: {[it['name'] for it in body['variables']]}")
        return found

    def evaluate(self, expression: str, context: str = "repl", **arguments: Any) -> Json:
        """What an expression or command of the debugger is."""
        arguments.setdefault("frameId", self.frames()[0]["id"])
        return self.request("evaluate", {"expression": expression, "context": context, **arguments})

    def end(self) -> None:
        """Ends the session; the adapter closes the connection, and where it was spawned its process is over."""
        self.request("disconnect", {})
        self._wait(lambda: self._ended, "the adapter does not close the connection", PATIENCE)
        if self.process is not None and self.process.wait(PATIENCE) != 0:
            raise ProtocolError(f"the adapter ended with code {self.process.returncode}")

    def check(self) -> None:
        """Raises what was found to be wrong so far."""
        if self.problems:
            raise ProtocolError("; ".join(self.problems))

    def _wait(self, there: Callable[[], bool], what: str, patience: float) -> None:
        until = time.monotonic() + patience
        with self._arrived:
            while not there():
                self.check()
                if self._ended:
                    raise ProtocolError(f"{what}: the connection is closed; {self._errors()}")
                left = until - time.monotonic()
                if left <= 0:
                    raise ProtocolError(f"{what} in {patience} s; the last messages: {self.log[-4:]}")
                self._arrived.wait(left)
        self.check()

    def _errors(self) -> str:
        if self.errors is None:
            return ""
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace")[-2000:]

    # ---- Receiving ----------------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            while (message := self._message()) is not None:
                with self._arrived:
                    self._take(message)
                    self._arrived.notify_all()
        except (ProtocolError, ValueError, OSError) as error:
            if not self._closed:
                self.problems.append(f"{type(error).__name__}: {error}")
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()

    def _message(self) -> Json | None:
        """The next message; None when the adapter has closed the connection between two of them."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = self.read(1)
            if not byte:
                if head:
                    raise ProtocolError(f"the connection ends within a header: {head!r}")
                return None
            head += byte
            if not b"Content-Length: ".startswith(head[:16]) and not head.startswith(b"Content-Length: "):
                raise ProtocolError(f"no header of the protocol: {head!r}")
        length = int(head[len(b"Content-Length: ") :].decode("ascii"))
        content = b""
        while len(content) < length:
            part = self.read(length - len(content))
            if not part:
                raise ProtocolError("the connection ends within a message")
            content += part
        found = json.loads(content.decode("utf-8"), parse_constant=_no_json)
        if not isinstance(found, dict):
            raise ProtocolError(f"no object: {found!r}")
        return found

    def _take(self, message: Json) -> None:
        self.log.append(("<", message))
        self.problems += wrong(message)
        self._theirs += 1
        if message.get("seq") != self._theirs:
            self.problems.append(f"number {message.get('seq')} instead of {self._theirs}")
        if message.get("type") == "event":
            self._events.append((len(self.log) - 1, message))
            if message.get("event") == "stopped":
                moving = [it for it in self._open.values() if it in MOTIONS]
                if moving and not self._moving:
                    self.problems.append(f"stopped before the response to {moving}")
                self._moving = max(self._moving - 1, 0)
            return
        command = self._open.pop(message.get("request_seq", 0), None)
        if command != message.get("command"):
            self.problems.append(f"an answer to no request: {message}")
            return
        if command in ("launch", "attach") and message.get("success") and not self._configured():
            self.problems.append(f"{command} is answered before configurationDone is sent")
        self._moving += command in {*MOTIONS, "launch", "attach", "restart"} and bool(message.get("success"))
        self._responses[message["request_seq"]] = Response(
            bool(message["success"]), message.get("message", ""), message.get("body", {}), len(self.log) - 1
        )

    def _configured(self) -> bool:
        return any(way == ">" and message["command"] == "configurationDone" for way, message in self.log)


def framed(message: Json) -> bytes:
    """A message with its header."""
    content = json.dumps(message, ensure_ascii=False).encode("utf-8")
    return b"Content-Length: %d\r\n\r\n" % len(content) + content


def _no_json(text: str) -> float:
    raise ProtocolError(f"{text} is no JSON")
