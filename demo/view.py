"""Shows the day while it runs: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from demo.load import BEGINS_HOURS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from demo.moments import Moment

BARS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 72
PLAIN_LINE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class FleetView:
    """The figures of one fleet that are shown."""

    name: str
    moments: Sequence[Moment]
    last_decision: str


class View(Protocol):
    """Shows each moment of the day."""

    def show(self, fleets: Sequence[FleetView], day_seconds: float) -> None:
        """Show the newest moment of each fleet, and the day so far."""

    def say(self, text: str) -> None:
        """Print a line that stays."""


@contextlib.contextmanager
def view() -> Iterator[View]:
    """Yield a live panel if stdout is a terminal, else plain lines."""
    console = Console(highlight=False)
    if not console.is_terminal:
        yield _PlainView(console)
        return
    with Live(console=console, refresh_per_second=5, transient=False) as live:
        yield _LiveView(live)


class _PlainView:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._next_seconds = 0.0

    def show(self, fleets: Sequence[FleetView], day_seconds: float) -> None:
        seconds = fleets[0].moments[-1].seconds
        if seconds < self._next_seconds:
            return
        self._next_seconds = seconds + PLAIN_LINE_SECONDS
        for fleet in fleets:
            now = fleet.moments[-1]
            self.say(
                f"{clock(now.seconds, day_seconds)}  {fleet.name:<10}  wanted {now.wanted:>4}  open {now.open:>4}  "
                f"capacity {now.capacity:>4}  pods {now.serving:>2}/{now.replicas:<2}  "
                f"refused {now.refused:>3} of {now.attempted:<5}  {fleet.last_decision}"
            )

    def say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)


class _LiveView:
    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, fleets: Sequence[FleetView], day_seconds: float) -> None:
        self._live.update(Group(*(panel(fleet, day_seconds) for fleet in fleets)))

    def say(self, text: str) -> None:
        self._live.console.print(text, soft_wrap=True)


def panel(fleet: FleetView, day_seconds: float) -> Panel:
    """Return the live picture of a fleet: present figures, and curves of the day so far on one scale."""
    moments, now = fleet.moments, fleet.moments[-1]
    figures = Table.grid(padding=(0, 3))
    figures.add_row("time of day", clock(now.seconds, day_seconds), "pods", f"{now.serving} serving of {now.replicas}")
    figures.add_row("connections", f"{now.open} of {now.wanted} wanted", "capacity", f"{now.capacity}")
    figures.add_row(
        "refused", f"{now.refused} of {now.attempted} ({now.refused_ratio:.1%})", "HPA", fleet.last_decision
    )
    top = max(1, *(moment.capacity for moment in moments))
    curves = Table.grid(padding=(0, 1))
    curves.add_row("wanted", Text(curve([moment.wanted for moment in moments], top), style="cyan"))
    curves.add_row("capacity", Text(curve([moment.capacity for moment in moments], top), style="green"))
    refusals = [after.refused - before.refused for before, after in itertools.pairwise(moments)]
    curves.add_row("refused", Text(curve(refusals, max([1, *refusals])), style="red"))
    return Panel(Group(figures, Text(), curves), title=f"Tidewatch: the day of the {fleet.name} fleet", width=110)


def curve(values: Sequence[int], top: int) -> str:
    """Return the values as one line of bars of at most `CURVE_WIDTH`, each the largest of its slice; 0 is a blank."""
    if not values:
        return ""
    width = min(CURVE_WIDTH, len(values))
    slices = [values[len(values) * i // width : max(len(values) * (i + 1) // width, 1)] for i in range(width)]
    return "".join(_bar(max(part), top) for part in slices)


def _bar(value: int, top: int) -> str:
    return BARS[min(value * len(BARS) // (top + 1), len(BARS) - 1)] if value > 0 else " "


def clock(seconds: float, day_seconds: float) -> str:
    """Return the time of the compressed day as `14:25`; it begins in the morning."""
    minutes = int(min(seconds / day_seconds, 1.0) * 24 * 60) + BEGINS_HOURS * 60
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"
