"""Rule files: how a change takes effect, and what a mistake costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demo.machine.files import replace_file
from tests.complaints.harness import COMPLAINTS, CONNECTIONS_RULE, QUEUE_RULE
from tests.support.forked import run
from tests.support.harnesses import NAMESPACES, PODS
from tests.support.serving import Adapter, Trust, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

WEB = {"labelSelector": "app=web"}
FIRST = f"rules:\n{CONNECTIONS_RULE}"
SECOND = f"{FIRST}\nexternalRules:\n{QUEUE_RULE}"
OLD = """\
rules:
- seriesQuery: '{__name__=~"^found_.*",namespace!="",pod!=""}'
  seriesFilters: []
  resources:
    template: <<.Resource>>
  name:
    matches: ^(.*)$
    as: "${1}_per_second"
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
externalRules:
- seriesQuery: '{__name__="queue_depth",namespace!=""}'
  resources:
    overrides:
      namespace: {resource: "namespace"}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
"""


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """Return a ConfigMap as the kubelet mounts it: a link that is switched."""
    folder = tmp_path / "mounted"
    replace_file(folder / "..first" / "config.yaml", FIRST)
    (folder / "..data").symlink_to("..first")
    (folder / "config.yaml").symlink_to("..data/config.yaml")
    return folder


@pytest.fixture
def reloading(tmp_path: Path, trust: Trust, prometheus: PrometheusProcess, mounted: Path) -> Iterator[Adapter]:
    with COMPLAINTS.adapter(tmp_path, trust, prometheus, rules=mounted) as running:
        yield running


def mount(folder: Path, version: str, text: str) -> None:
    replace_file(folder / f"..{version}" / "config.yaml", text)
    (folder / "..new").symlink_to(f"..{version}")
    (folder / "..new").replace(folder / "..data")


def test_a_changed_configmap_is_loaded_without_a_restart__prometheus_adapter_104_678(
    reloading: Adapter, mounted: Path
) -> None:
    worker = reloading.worker
    with reloading.caller() as caller:
        assert caller.external("queue_depth").status == 404
        mount(mounted, "second", SECOND)
        eventually(lambda: caller.external("queue_depth").status == 200)
        assert caller.pods("connections", **WEB).status == 200
    assert reloading.worker == worker
    eventually(lambda: reloading.metric("tidewatch_adapter_config_last_reload_successful") == 1)


def test_a_broken_change_is_refused_and_the_last_good_rules_stay_in_use__prometheus_adapter_104_678(
    reloading: Adapter, mounted: Path
) -> None:
    with reloading.caller() as caller:
        mount(mounted, "broken", "rules: [")
        reloading.wait_for(r" ERROR .*config\.yaml:[0-9]+: .*the last good rules stay in force")
        assert caller.pods("connections", **WEB).status == 200
    eventually(lambda: reloading.metric("tidewatch_adapter_config_last_reload_successful") == 0)


def test_a_rule_that_breaks_in_a_change_stays_in_use_as_it_was__prometheus_adapter_104_225(
    reloading: Adapter, mounted: Path
) -> None:
    """The rest of the change is in force, and a person who asks by hand gets a warning."""
    by_hand = ("User-Agent", "kubectl/v1.36.0")
    broken = CONNECTIONS_RULE.replace("<<.GroupBy>>", "<<.GroupBuy>>")
    with reloading.caller() as caller:
        before = caller.pods("connections", **WEB)
        mount(mounted, "half", f"rules:\n{broken}\nexternalRules:\n{QUEUE_RULE}")
        eventually(lambda: caller.external("queue_depth").status == 200)
        path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/%2A/connections"
        answer = caller.get(path, [by_hand], WEB)
        assert answer.values == before.values
        assert "its last good version is used" in (answer.header("Warning") or "")
        assert caller.pods("connections", **WEB).header("Warning") is None
    reloading.wait_for(r" ERROR .*config\.yaml:[0-9]+: .*code=bad-template")
    eventually(lambda: reloading.metric("tidewatch_adapter_rules", state="retained") == 1)


def test_file_and_flags_of_prometheus_adapter_are_accepted_unchanged__prometheus_adapter_701(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    """The flags are kube-prometheus's; `tests/compatibility/` serves many files that people use."""
    flags = (
        f"--cert-dir={tmp_path / 'serving-cert'}",
        "--metrics-relist-interval=1m",
        "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "--logtostderr=true",
        "--v=2",
    )
    with (
        COMPLAINTS.adapter(tmp_path, trust, prometheus, *flags, rules=OLD) as adapter,
        adapter.caller() as caller,
    ):
        eventually(lambda: "pods/found_requests_per_second" in caller.listed())
        (served,) = caller.pods("found_requests_per_second", **WEB).items
        assert served["describedObject"]["name"] == "web-0"
        assert len(caller.external("queue_depth").items) == 1


def test_check_finds_a_query_that_ignores_the_selector__prometheus_adapter_255(
    tmp_path: Path, prometheus: PrometheusProcess
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"""\
externalRules:
- seriesQuery: 'queue_depth{{namespace!=""}}'
  resources: {NAMESPACES}
  metricsQuery: 'sum(<<.Series>>{{queue="orders"}})'
""")
    ended = run("check", f"--config={rules}", f"--prometheus-url={prometheus.url}")
    assert f"{rules}:4:" in ended.out
    assert "warning[no-label-matchers]" in ended.out


def test_check_finds_a_rule_that_selects_all_series__prometheus_adapter_221(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"""\
rules:
- seriesQuery: '{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
""")
    assert "warning[matches-everything]" in run("check", f"--config={rules}").out
