"""A page looked at in a real browser: headless Chromium, spoken to over a pipe, so that nothing else is needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
"""None where no browser is installed."""
SECONDS = 40.0


class Page:
    """A page that is open. events: what the browser said without being asked."""

    def __init__(self, to: int, back: int) -> None:
        self.to, self.back, self.rest, self.number = to, back, b"", 0
        self.events: list[dict[str, Any]] = []
        self.session: str | None = None

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a command of the DevTools protocol."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (found := self._next()).get("id") != self.number:
            self.events.append(found)
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error']}")
        answer: dict[str, Any] = found["result"]
        return answer

    def until(self, event: str) -> None:
        """Waits for an event."""
        while not any(it.get("method") == event for it in self.events):
            self.events.append(self._next())

    def value(self, expression: str) -> Any:
        """The value of an expression in the page."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def show(self, path: Path, width: int, height: int) -> None:
        """Opens a file in a window of a size."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=True)
        self.ask("Page.navigate", url=path.as_uri())
        self.until("Page.loadEventFired")

    def picture(self) -> bytes:
        """What is to be seen, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot")["data"])

    def printed(self) -> bytes:
        """The page on paper, as PDF."""
        return base64.b64decode(self.ask("Page.printToPDF")["data"])

    def requested(self) -> list[str]:
        """What the page has asked for."""
        return [it["params"]["request"]["url"] for it in self.events if it.get("method") == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """What the browser has found wrong: what a policy forbids, what cannot be loaded."""
        return [it["params"]["entry"]["text"] for it in self.events if it.get("method") == "Log.entryAdded"]

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + SECONDS
        while b"\0" not in self.rest:
            if not select.select([self.back], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser says nothing")
            got = os.read(self.back, 1 << 16)
            if not got:
                raise ConnectionError("the browser ended")
            self.rest += got
        first, _, self.rest = self.rest.partition(b"\0")
        found: dict[str, Any] = json.loads(first)
        return found


@contextmanager
def browser() -> Iterator[Page]:
    """A page in a browser that is started for it."""
    assert CHROMIUM is not None
    read, to = os.pipe()
    back, write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        # The browser takes its commands from descriptor 3 and answers on 4.
        script = f'exec "$0" "$@" 3<&{read} 4>&{write}'
        process = subprocess.Popen(
            ["/bin/bash", "-c", script, CHROMIUM, *options],
            pass_fds=(read, write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        try:
            page = Page(to, back)
            target = page.ask("Target.createTarget", url="about:blank")["targetId"]
            page.session = page.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Network", "Log", "Runtime"):
                page.ask(f"{domain}.enable")
            yield page
        finally:
            process.kill()
            process.wait()
            os.close(to)
            os.close(back)
