"""Rule files for tests of `tidewatch-adapter check`, and a run of it on one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.forked import run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.forked import Ended

POD = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
GOOD = f"""rules:
- seriesQuery: 'open_connections{{namespace!="",pod!=""}}'
  resources: {POD}
  metricsQuery: sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})
"""
MENDABLE = """# Mine.
rules:
- seriesQuery: http_requests_total
  resources:
    overrides: {namespace: {resource: namespace}, pod: {resource: pod}}
    namespaced: false   # as the old program had it
  name: {matches: ^(.*)_total$, as: $1_per_second}
  metricQuery: sum by (<<.GroupBy>>) (rate(<<.Series>>{<<.LabelMatchers>>}[2m]))
"""


def check(folder: Path, rules: str, *arguments: str) -> Ended:
    file = folder / "rules.yaml"
    file.write_text(rules)
    return run("check", f"--config={file}", *arguments)
