"""The recommender's page in a real browser: its drawings match its text, light and dark, on a desktop and a phone."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.machine.processes import start
from tests.e2e.support.browser import CHROMIUM, needs_browser
from tests.e2e.support.devtools import opened_browser
from tests.recommender.configuration.files import TARGET, entry, whole
from tests.support.cluster_objects import metadata_of, node_object
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = str(Path(sys.executable).with_name("tidewatch-recommender"))
SIZES = {"desk": (1100, 900), "phone": (500, 900)}
BLOCKED = re.compile(r"Content Security Policy|Refused to|Uncaught|ERR_")
"""Lines that a browser logs when a page violates its own policy, or fails."""
BROKEN = """cell => [...cell.textContent.matchAll(/\\S+/g)].map(word => {
  const range = document.createRange()
  range.setStart(cell.firstChild, word.index)
  range.setEnd(cell.firstChild, word.index + word[0].length)
  return range.getClientRects().length > 1 ? word[0] : ""
}).filter(Boolean)"""
"""A function of JavaScript that returns the words of a cell that are broken into two lines."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Rows of RGB pixels."""

    width: int
    height: int
    rows: tuple[bytes, ...]

    def brightness(self) -> float:
        """Return the mean of all channels, from 0 to 255."""
        return sum(map(sum, self.rows)) / (3 * self.width * self.height)

    def colors(self) -> int:
        """Return the number of different colors."""
        return len({row[at : at + 3] for row in self.rows for at in range(0, 3 * self.width, 3)})


def read_png(path: Path) -> Picture:
    """Return the pixels of a PNG with 8 bits of RGB or RGBA, as browsers write it (RFC 2083)."""
    data, at = path.read_bytes(), 8
    chunks: dict[bytes, bytes] = {}
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        chunks[kind] = chunks.get(kind, b"") + data[at + 8 : at + 8 + length]
        at += 12 + length
    width, height, depth, kind_of_color = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    channels = {2: 3, 6: 4}[kind_of_color]
    assert depth == 8
    raw, stride = zlib.decompress(chunks[b"IDAT"]), width * channels
    rows, above = [], bytearray(stride)
    for number in range(height):
        begin = number * (stride + 1)
        above = unfiltered(raw[begin], bytearray(raw[begin + 1 : begin + 1 + stride]), above, channels)
        row = bytes(above)
        rows.append(b"".join(row[x : x + 3] for x in range(0, stride, channels)) if channels == 4 else row)
    return Picture(width, height, tuple(rows))


def unfiltered(kind: int, row: bytearray, above: bytearray, channels: int) -> bytearray:
    for at in range(len(row)):
        left = row[at - channels] if at >= channels else 0
        corner = above[at - channels] if at >= channels else 0
        row[at] = (row[at] + predicted(kind, left, above[at], corner)) & 0xFF
    return row


def predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 4:
        estimate = left + up - corner
        return min((left, up, corner), key=lambda one: abs(estimate - one))
    return (0, left, up, (left + up) // 2)[kind]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the page of a recommender with one recommendation for each kind of outcome."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "objects").mkdir()
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata_of("coredns", "kube-system"),
        "spec": {"replicas": 3},
    }
    items = [*(node_object(f"n{number}") for number in range(180)), deployment]
    (folder / "objects" / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    target = f"targets: [{TARGET}]"
    content = whole(
        entry("coredns", target),
        entry("paused", target, "paused: true"),
        entry("broken", kind="proportional: {linaer: {}}"),
        top=f"pollInterval: 1s\nstate: {folder}/state\n",
    )
    (folder / "recommender.yaml").write_text(content)
    log = folder / "log"
    command = [
        PROGRAM,
        "run",
        f"--config={folder}/recommender.yaml",
        f"--objects={folder}/objects",
        "--port=0",
        "--plain-bind-address=127.0.0.1:0",
    ]
    with start(command, log_path=log, name="recommender"):
        yield until(lambda: "".join(re.findall(r" serving address=(http://\S+)", log.read_text())[-1:]), 20)


def screenshot(address: str, path: Path, size: tuple[int, int], *, dark: bool) -> tuple[Picture, str]:
    """Return the picture and what the browser logged."""
    command = [
        os.environ[CHROMIUM],
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--enable-logging=stderr",
        f"--user-data-dir={path.parent / 'profile'}",
        f"--window-size={size[0]},{size[1]}",
        f"--screenshot={path}",
        *(["--blink-settings=preferredColorScheme=0", "--force-dark-mode"] if dark else []),
        address,
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return read_png(path), found.stderr


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("device", SIZES)
def test_the_page_is_drawn(address: str, tmp_path: Path, device: str, *, dark: bool) -> None:
    picture, logged = screenshot(address, tmp_path / "page.png", SIZES[device], dark=dark)
    assert (picture.width, picture.height) == SIZES[device]
    assert picture.colors() > 20, "text, lines and badges"
    assert (picture.brightness() < 90) if dark else (picture.brightness() > 190)
    assert not [line for line in logged.splitlines() if "CONSOLE" in line and BLOCKED.search(line)]


@needs_browser
def test_the_tables_of_a_recommendation_fit_on_a_narrow_phone(address: str, tmp_path: Path) -> None:
    with opened_browser(tmp_path) as browser:
        browser.resize(360)
        browser.open(f"{address}/?show=coredns")
        browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
        widths = "each => [each.ariaLabel, each.scrollWidth, each.clientWidth]"
        found = browser.value(f"[...document.querySelectorAll('.scroll')].map({widths})")
        broken = browser.value(f"[...document.querySelectorAll('.targets-in-full td:nth-child(3)')].flatMap({BROKEN})")
    assert [label for label, _, _ in found] == ["Targets of coredns", "Steps of coredns"]
    assert [row for row in found if row[1] > row[2]] == []
    assert broken == []


@needs_browser
def test_the_browser_reads_what_the_api_says(address: str, tmp_path: Path) -> None:
    command = [
        os.environ[CHROMIUM],
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
        address,
    ]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert text.count("<article") == 3
    assert "3 → 12" in text
    assert "did you mean" in text
    assert "Held" in text
