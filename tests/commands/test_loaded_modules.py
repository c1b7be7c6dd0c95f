"""What a serving process loads: the packages for forecasts would add some 100 MiB to each replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.serving import Trust, eventually, listed, pod, running_adapter

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

RULES = """\
rules:
- seriesQuery: 'up{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
"""
NOTES_WHAT_IS_LOADED = """\
import sys


class Notes:
    def find_spec(self, name, path=None, target=None):
        with open({notes!r}, "a") as stream:
            stream.write(name + "\\n")


sys.meta_path.insert(0, Notes())
"""


def test_serving_loads_neither_numpy_nor_its_kin(tmp_path: Path, trust: Trust, prometheus: PrometheusProcess) -> None:
    notes, folder = tmp_path / "loaded", tmp_path / "path"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(NOTES_WHAT_IS_LOADED.replace("{notes!r}", repr(str(notes))))
    with running_adapter(
        tmp_path / "adapter",
        trust,
        prometheus_url=prometheus.url,
        rules=RULES,
        objects={"pods.json": listed(pod("web-0"))},
        environment={"PYTHONPATH": str(folder)},
    ) as adapter:
        eventually(lambda: adapter.said("Prometheus answers"))
    loaded = {name.partition(".")[0] for name in notes.read_text().split()}
    assert {"adapter", "gunicorn", "prometheus_api_client"} <= loaded
    assert not loaded & {"numpy", "pandas", "scipy", "statsmodels", "sklearn", "matplotlib"}
