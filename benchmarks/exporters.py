"""A process with scrape targets for a whole fleet, cheap to scrape: `python -m benchmarks.exporters PLAN`.

The text of gauges does not change. A counter's value is its rate times the time, in whole seconds, so its rate is known
to the last digit however late a scrape is. All samples have the timestamp of that second: a scrape that fails on a busy
machine does not end their series.
"""

from __future__ import annotations

import sys
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

import msgspec

from benchmarks.fleet_of_pods import Fleet  # noqa: TC001 - msgspec reads the annotations
from demo.machine.files import replace_file
from demo.machine.http_answers import AnswerHandler

_EPOCH = 1_700_000_000
"""The time at which all counters began, in Unix seconds."""


class ExporterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The series to expose, and the file for the port."""

    fleet: Fleet
    targets: int
    port_file: str


class Target:
    """The text of one scrape target."""

    def __init__(self, fleet: Fleet, apps: range) -> None:
        self._gauges = "".join(fleet.gauge_lines(apps)).encode()
        self._counters = [
            (rate, [line.encode() for line in lines]) for rate, lines in fleet.counter_series(apps).items()
        ]

    def text(self, now: float) -> bytes:
        """Return the exposition at a time in Unix seconds."""
        second = int(now)
        pieces = [self._gauges.replace(b"\n", b" %d\n" % (1000 * second))]
        for rate, series in self._counters:
            end = b" %d %d\n" % (rate * (second - _EPOCH), 1000 * second)
            pieces += [end.join(series), end]
        return b"".join(pieces)


def apps_of_target(fleet: Fleet, targets: int, number: int) -> range:
    """Return the apps that one of the targets exposes."""
    return range(number, fleet.apps, targets)


def main() -> None:
    """Serve target N at `/N` until the process is killed."""
    plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=ExporterPlan)
    fleet = plan.fleet
    targets = [Target(fleet, apps_of_target(fleet, plan.targets, number)) for number in range(plan.targets)]
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(targets))
    replace_file(Path(plan.port_file), str(server.server_address[1]))
    server.serve_forever()


def _handler_of(targets: list[Target]) -> type[AnswerHandler]:
    class Handler(AnswerHandler):
        def do_GET(self) -> None:
            text = targets[int(self.path.strip("/"))].text(time.time())
            self.answer(text, "text/plain; version=0.0.4; charset=utf-8")

    return Handler


if __name__ == "__main__":
    main()
