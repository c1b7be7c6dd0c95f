"""The doctor looks for HPAs that scale node groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterState, Observed, Unknown
from adapter.foundation.reports.lines import CheckStatus, Line
from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from recommender.commands.doctor.group_autoscalers import look_at_group_autoscalers
from recommender.configuration.reading import read_configuration
from tests.recommender.configuration.files import entry, whole
from tests.recommender.running.polls.test_node_group_targets import API, LIMITS, MACHINES, SIZES, listed, workers
from tests.support.object_apiserver import HPAS, ObjectApiServer

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.recommender.running.polls.test_node_group_targets import Known

GROUPS: Final = listed(workers(**LIMITS))


def lines(server: ObjectApiServer, folder: Path, known: Known, outputs: str = "[scale]") -> list[Line]:
    configuration = read_configuration(whole(entry("nodes", f"outputs: {outputs}", kind=SIZES)), "r.yaml")
    client = ObjectClient(KubernetesClient(from_kubeconfig(str(server.kubeconfig(folder / "config")))), 5.0)
    cluster = ClusterState(nodes=Observed((), 1.0), objects={MACHINES: known})
    return list(look_at_group_autoscalers(client, configuration.recommendations[0], cluster))


def test_an_hpa_that_scales_a_written_node_group_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with ObjectApiServer() as server:
        for name, kind in (("workers", "MachineDeployment"), ("web", "Deployment")):
            target = {"apiVersion": API if name == "workers" else "apps/v1", "kind": kind, "name": "workers"}
            server.objects.put(HPAS, "capi", name, {"spec": {"scaleTargetRef": target}})
        (line,) = lines(server, tmp_path, GROUPS)
        assert (line.name, line.status) == ("hpa/capi/workers", CheckStatus.ERROR)
        assert (
            line.message == "it scales MachineDeployment capi/workers, whose size the recommendation nodes writes too"
        )
        # The object is not a group, nothing is known of it, or its size is not written.
        assert not lines(server, tmp_path, listed(workers()))
        assert not lines(server, tmp_path, Unknown("reading them is forbidden"))
        assert not lines(server, tmp_path, GROUPS, "[metric]")
        server.objects.deny("list", "horizontalpodautoscalers")
        (line,) = lines(server, tmp_path, GROUPS)
        assert (line.name, line.status) == ("hpas/nodes/capi", CheckStatus.UNKNOWN)
        assert "grant list on horizontalpodautoscalers.autoscaling in capi" in line.fix
