"""A page in a real Chromium that a test types into and queries, over the DevTools protocol.

    with opened_browser(folder) as browser:
        browser.open(address)
        browser.press("Tab")
        assert browser.value("document.activeElement.className") == "skip"

The protocol: https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from websockets.sync.client import ClientConnection, connect

from demo.machine.processes import start
from tests.e2e.support.browser import CHROMIUM
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SECONDS: Final = 60.0
_LARGEST_MESSAGE: Final = 64 * 2**20
_KEYS: Final = {"Tab": (9, ""), "Enter": (13, "\r"), "ArrowDown": (40, ""), "ArrowRight": (39, ""), " ": (32, " ")}
"""The virtual key code of each key, and the text that it types."""


@dataclass(slots=True)
class Browser:
    """One page."""

    connection: ClientConnection
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    violations: list[str] = field(default_factory=list)
    """Loads that the page's own Content-Security-Policy has blocked, and script errors."""

    def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        """Return the answer to a method; events that come before it are recorded."""
        number = next(self.numbers)
        self.connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.connection.recv(timeout=_SECONDS))
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                answer: dict[str, Any] = message["result"]
                return answer
            if message.get("method") == "Log.entryAdded":
                self.violations.append(message["params"]["entry"]["text"])

    def open(self, address: str) -> None:
        """Load an address, and wait until the page is there."""
        self.ask("Page.navigate", url=address)
        self.wait_for_page(address)

    def wait_for_page(self, part: str) -> None:
        """Wait until a document whose address contains a part is complete."""
        asked = f"document.readyState === 'complete' && decodeURIComponent(location.href).includes({json.dumps(part)})"
        until(lambda: self.value(asked), _SECONDS)

    def value(self, expression: str) -> Any:  # noqa: ANN401 - whatever the expression gives
        """Return the value of a JavaScript expression, to which the page's policy does not apply."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        code, text = _KEYS[key]
        event = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **event)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Type a text into the focused element."""
        self.ask("Input.insertText", text=text)

    def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Show the page in a window of this size, for a user who prefers dark or light pages."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self) -> bytes:
        """Return the window as a PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])


@contextmanager
def opened_browser(folder: Path) -> Iterator[Browser]:
    """Start a Chromium whose profile is in a folder, and end it after the block."""
    command = [
        os.environ[CHROMIUM],
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--remote-debugging-port=0",
        f"--user-data-dir={folder / 'profile'}",
        "about:blank",
    ]
    said = folder / "profile" / "DevToolsActivePort"
    with start(command, log_path=folder / "chromium.log", name="chromium"):
        port = until(lambda: said.exists() and said.read_text().splitlines()[0], _SECONDS)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=_SECONDS) as answer:
            pages = [page for page in json.load(answer) if page["type"] == "page"]
        with connect(pages[0]["webSocketDebuggerUrl"], max_size=_LARGEST_MESSAGE) as connection:
            browser = Browser(connection)
            for domain in ("Page", "Runtime", "Log"):
                browser.ask(f"{domain}.enable")
            yield browser
