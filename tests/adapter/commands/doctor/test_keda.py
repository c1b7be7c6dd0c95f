"""The doctor looks at a cluster in which KEDA serves external.metrics.k8s.io, and the adapter the other APIs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.reports.lines import CheckStatus
from tests.adapter.metrics.identity.certificates.keeping_harness import CUSTOM, EXTERNAL, SERVICE, apiservice
from tests.support.apiserver_kinds import APISERVICES

if TYPE_CHECKING:
    from adapter.foundation.reports.lines import Line
    from tests.adapter.commands.doctor.installation import Installation
    from tests.support.apiserver_store import Json

KEDA = replace(SERVICE, namespace="keda", name="keda-operator-metrics-apiserver")
LINE = f"apiservice/{EXTERNAL}"
RULES = """
{0}:
- seriesQuery: queue_depth
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
  resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}}}
"""


@pytest.fixture(autouse=True, params=[KEDA.name, "keda-metrics-apiserver"])
def _of_keda(installation: Installation, request: pytest.FixtureRequest) -> None:
    """Of KEDA's chart, and of its manifests."""
    installation.register(EXTERNAL, apiservice(EXTERNAL, replace(KEDA, name=request.param)))


def lines_of(installation: Installation, *flags: str) -> dict[str, Line]:
    return installation.lines("--service=", *flags)


def with_rules(installation: Installation, key: str) -> str:
    rules = installation.folder / "rules.yaml"
    rules.write_text(RULES.format(key))
    return f"--config={rules}"


def test_the_api_of_keda_is_named_and_nothing_is_wrong(installation: Installation) -> None:
    lines = lines_of(installation)
    assert lines[LINE].status is CheckStatus.OK
    assert "it belongs to keda/keda-" in lines[LINE].message
    assert "KEDA" in lines[LINE].message
    assert "service" not in lines
    assert not {f"certificate/{EXTERNAL}", f"request/{EXTERNAL}"} & lines.keys()
    assert {f"certificate/{CUSTOM}", f"request/{CUSTOM}"} <= lines.keys()


def test_keda_alone_is_not_taken_for_the_adapter(installation: Installation) -> None:
    installation.cluster.objects.remove(APISERVICES, "", CUSTOM)
    assert "replicas" not in lines_of(installation)


@pytest.mark.parametrize(("key", "status"), [("rules", CheckStatus.OK), ("externalRules", CheckStatus.WARNING)])
def test_external_rules_without_effect_are_a_warning(installation: Installation, key: str, status: CheckStatus) -> None:
    line = lines_of(installation, with_rules(installation, key))[LINE]
    assert line.status is status
    assert ("externalRules have no effect" in line.message) is (status is CheckStatus.WARNING)


def test_the_api_of_keda_is_an_error_if_a_flag_names_it_or_the_service(installation: Installation) -> None:
    named = lines_of(installation, f"--apiservice={CUSTOM}", f"--apiservice={EXTERNAL}")
    assert named[LINE].status is CheckStatus.ERROR
    assert "not to the adapter's Service" in named[LINE].message
    line = installation.lines()[LINE]
    assert line.status is CheckStatus.ERROR
    assert "name the others with --apiservice" in line.fix


def test_an_api_of_keda_that_is_not_available_is_a_warning(installation: Installation) -> None:
    gone: Json = {"conditions": [{"type": "Available", "status": "False", "reason": "MissingEndpoints"}]}
    installation.register(EXTERNAL, apiservice(EXTERNAL, KEDA), gone)
    line = lines_of(installation)[LINE]
    assert line.status is CheckStatus.WARNING
    assert "is not available: MissingEndpoints" in line.message


def test_hpas_of_keda_without_a_metric_are_not_reported(installation: Installation) -> None:
    installation.hpa("of-keda", "FailedGetExternalMetric", "no scaler")
    line = lines_of(installation)["hpas"]
    checked = ", and none that uses one fails to scale its target"
    assert line.message == f"no HPA lacks a custom metric{checked}; HPAs: 1"
