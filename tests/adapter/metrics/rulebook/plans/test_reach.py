"""A query looks back for some time, which must have been scraped before no data means that there is none."""

from __future__ import annotations

import math

import pytest

from adapter.foundation.objects.durations import LONGEST_SECONDS
from adapter.foundation.promql.reach import oldest_sample
from adapter.foundation.promql.tree_parser import parse_query
from adapter.metrics.rulebook.plans.reach import ranges_of
from adapter.metrics.rulebook.templates.template import parse_query_template


@pytest.mark.parametrize(
    ("query", "ranges", "oldest"),
    [
        ("x{<<.LabelMatchers>>}", 0, 300),
        ("1 + vector(1)", 0, 0),
        ("rate(x{<<.LabelMatchers>>}[1m])", 60, 60),
        ("sum by (<<.GroupBy>>) (rate(x{<<.LabelMatchers>>}[1m]) / rate(y[15m]))", 900, 900),
        ("x{<<.LabelMatchers>>} / rate(y[1m])", 60, 300),
        ("topk(scalar(max_over_time(x[10m])), y)", 600, 600),
        ("max_over_time(rate(x[1m])[10m:30s])", 660, 660),
        ("max_over_time(x[10m:])", 600, 900),
        ("x offset 5m", 300, 600),
        ("rate(x[5m] offset 1h)", 3900, 3900),
        ("max_over_time(x[1m:] offset 1h)", 3660, 3960),
        ("x offset -5m", 0, 300),
        ("-(rate(x[2m]))", 120, 120),
    ],
)
def test_ranges_subqueries_and_offsets_add_up(query: str, ranges: float, oldest: float) -> None:
    template = parse_query_template(query)
    rendered = query.replace("{<<.LabelMatchers>>}", "").replace("<<.GroupBy>>", "pod")

    assert ranges_of(template) == ranges
    assert oldest_sample(parse_query(rendered)) == oldest


@pytest.mark.parametrize(
    ("query", "ranges"),
    [
        ("new_function(x[1h30m], y[ 5m:1m ])", 5700),
        ('new_function(x{code=~"5[0-9]"}[90s])', 90),
        ("new_function(x)", 0),
        ("rate(x[90] smoothed)", 90),
        ("rate(x[1e3] smoothed)", 1000),
        ("rate(x[1.5E2] smoothed offset 1_000)", 1150),
        ("rate(x[0x10] smoothed offset 0XFF)", 271),
        (f"rate(x[0x{'f' * 400}] smoothed)", LONGEST_SECONDS),
        ("rate(x[1e999] smoothed)", LONGEST_SECONDS),
        ("rate(x[0x] smoothed)", math.inf),
        ("rate(x[1__s] smoothed)", math.inf),
        ("rate(x[1m] anchored) / rate(x[2m] offset 1h)", 3720),
        ("max_over_time(rate(x[5m] smoothed)[1h:1m]) + rate(y[10m])", 3900),
        ("max_over_time(rate(x[5m] smoothed)[1h:]) + max_over_time(y[1h:])", 7500),
        ("max_over_time(x[max_of(1h, 2h):])", math.inf),
        ("x smoothed offset", 0),
        ("x smoothed / offset", 0),
        ("x smoothed offset +", 0),
        ("rate(x[", math.inf),
        ("rate(x[1m] smoothed offset +300) - x offset -5m", 360),
        ('sum by (offset) (rate({offset="x[1h]"}[1m] smoothed))', 60),
        ("rate(x[1h + 30m])", math.inf),
        ("rate(x[2 * 1h])", math.inf),
        ("rate(x[(1h)] smoothed)", math.inf),
        ("max_over_time(x[max_of(1h, 2h):1m])", math.inf),
        ("rate(x[1m] offset (1h + 30m))", math.inf),
        ("rate(x[1m] smoothed offset -(1h + 30m))", math.inf),
        ("x smoothed offset step()", math.inf),
        pytest.param(f"rate(x[{'9' * 400}y])", LONGEST_SECONDS, id="more than a float holds"),
        pytest.param(f"rate(x[{'9' * 5000}y])", LONGEST_SECONDS, id="more digits than Python reads"),
    ],
)
def test_the_reach_of_an_unreadable_query_is_at_least_that_of_its_ranges_and_offsets(query: str, ranges: float) -> None:
    assert ranges_of(parse_query_template(query)) == ranges
