"""Complaints of users of load-aware schedulers that flags, rights and the configuration resolve.

Names end with the project and the number of its issue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.commands.nodes.flags import NODES
from adapter.commands.nodes.nodes_settings import nodes_settings
from adapter.foundation.cluster.values.state import ClusterState, Unknown
from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from adapter.foundation.sources.prometheus.transport.credentials import Credentials
from adapter.nodes.configuration.reading import SchedulingFileError, read_scheduling
from adapter.nodes.snapshot.cluster_facts import node_facts
from tests.adapter.nodes.snapshot.scripted_keeper import Script, averages

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

HEAD = "apiVersion: tidewatch.io/v1alpha1\nkind: SchedulingConfiguration\n"


def prometheus_of(*flags: str, **environment: str) -> PrometheusSettings:
    return nodes_settings(parse_flags(NODES, flags, {}), environment).prometheus


@pytest.mark.parametrize(
    "refusal",
    [
        Unknown("nodes is forbidden: the service account may not list nodes", is_refused=True),
        Unknown("no cluster is configured"),
    ],
)
def test_without_rights_the_windows_are_served_by_instance__load_watcher_81(refusal: Unknown) -> None:
    script = Script()
    script.facts = node_facts(ClusterState(nodes=refusal), refusal)
    keeper = script.keeper()
    keeper.refresh()
    assert averages(keeper) == pytest.approx({"a": 0.2, "b": 0.4})
    assert keeper.published.snapshot.basis == "metrics"


def test_a_header_can_be_sent_with_every_query__load_watcher_82() -> None:
    settings = prometheus_of("--prometheus-header=X-Scope-OrgID=team-a", "--prometheus-header=X-Forwarded-User=me")
    assert Credentials(settings).headers() == {"X-Scope-OrgID": "team-a", "X-Forwarded-User": "me"}


def test_thanos_is_queried_with_a_token_and_below_a_path__secondary_scheduler_operator_91(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-thanos\n")
    url = "https://thanos-querier.openshift-monitoring.svc:9091/prefix"
    settings = prometheus_of(f"--prometheus-url={url}", f"--prometheus-token-file={tmp_path / 'token'}")
    assert Credentials(settings).headers() == {"Authorization": "Bearer of-thanos"}
    assert settings.endpoint.path == "/prefix"


def test_an_address_without_a_scheme_is_refused_with_the_expected_form__crane_4() -> None:
    with pytest.raises(UsageError, match=r"no http:// or https:// or no host: write http\(s\)://HOST"):
        prometheus_of(METRICS_PROVIDER_ADDRESS="prometheus.monitoring:9090")


def test_an_unknown_key_is_refused_with_the_key_that_is_meant__scheduler_plugins_618() -> None:
    text = f"{HEAD}policies:\n- name: target-load-packing\n  args:\n    targetUtilisation: 60\n"
    with pytest.raises(SchedulingFileError) as caught:
        read_scheduling(text, "scheduling.yaml")
    assert str(caught.value) == (
        "scheduling.yaml:6: the key 'targetUtilisation' is not known: did you mean 'targetUtilization'?"
    )


def test_one_collector_serves_all_policies_and_readers__scheduler_plugins_402() -> None:
    script = Script()
    keeper = script.keeper()
    keeper.refresh()
    published = keeper.published
    assert len(script.refreshed_with) == 1
    assert published.watcher is not None
    assert published.watcher.snapshot is published.snapshot.loads
