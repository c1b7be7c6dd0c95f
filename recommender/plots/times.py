"""The axis of time: days and hours in UTC, each with a label that is clear by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_YEAR, _MONTH, _DAY, _HOUR, _SECOND = "%Y", "%b %Y", "%-d %b", "%H:%M", "%H:%M:%S"
_FORMATS: Final = [_YEAR, _MONTH, _DAY, _HOUR, _HOUR, _SECOND]
"""The formats of ticks that are years, months, days, hours, minutes and seconds apart."""
_FIRST_FORMATS: Final = [_YEAR, _MONTH, _DAY, _DAY, _HOUR, _SECOND]
"""The formats of ticks at which the next longer unit begins, such as a day at midnight."""
_FEWEST_TICKS: Final = 4
_MOST_TICKS: Final = 10
_THREE_DIGITS: Final = 100


def time_axis(axes: Axes, start: float) -> None:
    """Write times at the lower axis, and the year and "UTC" below it; `start` is in seconds."""
    locator = AutoDateLocator(minticks=_FEWEST_TICKS, maxticks=_MOST_TICKS)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(
        ConciseDateFormatter(locator, formats=_FORMATS, zero_formats=_FIRST_FORMATS, show_offset=False)  # type: ignore[no-untyped-call]
    )
    axes.set_xlabel(f"UTC, from {datetime.fromtimestamp(start, UTC):%Y-%m-%d}")


def whole_numbers(axes: Axes) -> None:
    """Allow no tick between two whole numbers on the axis of values."""
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def amount_text(value: float) -> str:
    """Return an amount with three digits, or with all digits before the point: `1.63`, `57.2`, `21,240`."""
    return f"{value:,.0f}" if value >= _THREE_DIGITS else f"{value:.3g}"
