"""Describes how PromQL's functions and aggregations treat the series they get.

The lists contain the names of Prometheus 2 and 3. A function that is not listed is assumed to combine all its series.
"""

from __future__ import annotations

from typing import Final

_RATES: Final = frozenset(
    {"changes", "delta", "deriv", "idelta", "increase", "irate", "predict_linear", "rate", "resets"}
)
_SMOOTHINGS: Final = frozenset({"double_exponential_smoothing", "holt_winters"})
_OVER_TIME: Final = frozenset(
    f"{what}_over_time"
    for what in (
        *("avg", "count", "first", "last", "mad", "max", "min", "present", "quantile", "stddev", "stdvar", "sum"),
        *("ts_of_first", "ts_of_last", "ts_of_max", "ts_of_min"),
    )
)
_ROUNDING: Final = frozenset({"abs", "ceil", "clamp", "clamp_max", "clamp_min", "floor", "round", "sgn"})
_POWERS: Final = frozenset({"exp", "ln", "log10", "log2", "sqrt"})
_ANGLES: Final = frozenset({"acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "deg"})
_MORE_ANGLES: Final = frozenset({"rad", "sin", "sinh", "tan", "tanh"})
_TIMES: Final = frozenset({"day_of_month", "day_of_week", "day_of_year", "days_in_month", "hour", "minute", "month"})
_MORE_TIMES: Final = frozenset({"timestamp", "year"})
_ORDERS: Final = frozenset({"sort", "sort_by_label", "sort_by_label_desc", "sort_desc"})
_NATIVE_HISTOGRAMS: Final = frozenset(f"histogram_{what}" for what in ("avg", "count", "stddev", "stdvar", "sum"))

SERIES_BY_SERIES: Final = frozenset().union(
    _RATES,
    _SMOOTHINGS,
    _OVER_TIME,
    _ROUNDING,
    _POWERS,
    _ANGLES,
    _MORE_ANGLES,
    _TIMES,
    _MORE_TIMES,
    _ORDERS,
    _NATIVE_HISTOGRAMS,
)
"""Functions whose result for a series depends only on that series, and that keep all labels except the name."""

ACROSS_BUCKETS: Final = frozenset({"histogram_quantile", "histogram_fraction"})
"""Functions that combine the series that differ only in `le`, and drop that label."""

LABEL_WRITERS: Final = frozenset({"label_replace", "label_join"})
"""Functions that write the label named by their second argument."""

GROUP_BY_GROUP: Final = frozenset(["sum", "min", "max", "avg", "count", "group", "stddev", "stdvar", "quantile"])
"""Aggregations whose result for a group depends only on the series of that group."""

REFUSED_AGGREGATIONS: Final = {
    "topk": "selects among the series of all requests",
    "bottomk": "selects among the series of all requests",
    "limitk": "selects among the series of all requests",
    "limit_ratio": "selects among the series of all requests",
    "count_values": "counts the values of all requests, and writes them to a label",
}
"""Aggregations whose result cannot be filtered, each with the reason."""

REFUSED_FUNCTIONS: Final = {
    "absent": "returns a series when its argument has none",
    "absent_over_time": "returns a series when its argument has none",
    "scalar": "is a number only for exactly one series, and loses its labels",
    "info": "adds labels from other series",
}
"""Functions whose result cannot be filtered, each with the reason."""


def labels_read(function: str, arguments: tuple[str, ...]) -> frozenset[str]:
    """Return the labels that a function of LABEL_WRITERS reads, given its strings in order."""
    # label_replace(v, destination, replacement, source, pattern); label_join(v, destination, separator, source, ...).
    return frozenset(arguments[2:3] if function == "label_replace" else arguments[2:])
