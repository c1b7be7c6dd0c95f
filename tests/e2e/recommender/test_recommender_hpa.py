"""HPAs follow `recommended_replicas` through the adapter, as an Object metric on the target and as an External one.

With a tolerance of 0, which `autoscaling/v2` has in `behavior` since Kubernetes 1.33 (on by default since 1.35): with
the usual 10% an HPA of 20 replicas ignores a recommendation of 21.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

from demo.machine.files import replace_file
from tests.e2e.support.autoscalers import Autoscaler, Autoscalers, external_metric, object_metric
from tests.e2e.support.figures import state
from tests.e2e.support.installed import installed_adapter, values_for_recommendations
from tests.e2e.support.recommenders import Pool, Workload, rule, service_account
from tests.e2e.support.scraping import reconfigured, with_job
from tests.recommender.configuration.files import entry, whole
from tests.support.recommenders import started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.controlplane.cluster import Cluster
    from tests.support.prometheus import ScrapedPrometheus
    from tests.support.recommenders import Recommender

__all__ = ["state"]

pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(300)]

SIZE: Final = 20
METRIC: Final = "recommended_replicas"
EXACT: Final = {
    direction: {"stabilizationWindowSeconds": 0, "tolerance": "0"} for direction in ("scaleUp", "scaleDown")
}
NAMES: Final = ("by-object", "by-external")
CHANGE_SECONDS: Final = 60.0


@pytest.fixture(scope="module")
def adapter(cluster: Cluster, prometheus: ScrapedPrometheus) -> Iterator[None]:
    with installed_adapter(cluster, values_for_recommendations(prometheus)):
        yield


@pytest.fixture
def pool(cluster: Cluster) -> Iterator[Pool]:
    found = Pool(cluster)
    yield found
    found.remove()


def test_hpas_follow_a_recommendation_of_one_more_and_one_less(
    cluster: Cluster,
    namespace: str,
    adapter: None,  # noqa: ARG001 - it is only to run
    prometheus: ScrapedPrometheus,
    pool: Pool,
    tmp_path: Path,
    state: Callable[[str, str], None],
) -> None:
    pool.add(SIZE)
    scalers = Autoscalers(
        cluster,
        namespace,
        *(
            Autoscaler(namespace, name, metric, replicas=SIZE, maximum=50, behaviour=EXACT)
            for name, metric in zip(NAMES, metrics(), strict=True)
        ),
    )
    scalers.create_deployments()
    with ExitStack() as stack:
        program = recommender(cluster, namespace, pool, tmp_path, stack)
        address = program.address(plain=True)
        scrape = {"job_name": METRIC, "scrape_interval": "1s", "static_configs": [{"targets": [address]}]}
        stack.enter_context(reconfigured(prometheus.prometheus, lambda before: with_job(before, scrape)))
        scalers.wait_for_answers()
        scalers.create_hpas()
        scalers.wait_for_syncs(1)
        assert scalers.sizes() == dict.fromkeys(NAMES, SIZE)
        pool.add(1)
        state("HPAs follow 20 to 21", delays(program, scalers, SIZE + 1))
        pool.remove(keep=SIZE)
        state("HPAs follow 21 to 20", delays(program, scalers, SIZE))
        scalers.wait_for_syncs(1)
        assert scalers.sizes() == dict.fromkeys(NAMES, SIZE)
        # What is only published is written by nobody else.
        assert Workload(cluster, namespace, NAMES[0]).writes() == []


def metrics() -> tuple[dict[str, Any], ...]:
    """Return the entries of `spec.metrics`, in the order of their names."""
    by_object, by_external = NAMES
    labels = {"target_kind": "Deployment", "target_name": by_external}
    return (
        object_metric(METRIC, "Deployment", by_object, averageValue="1"),
        external_metric(METRIC, labels, averageValue="1"),
    )


def recommender(cluster: Cluster, namespace: str, pool: Pool, folder: Path, stack: ExitStack) -> Recommender:
    """Run a recommender that only publishes, for all Deployments."""
    here = [
        rule(["apps"], ["deployments"], "get", *NAMES),
        rule(["autoscaling"], ["horizontalpodautoscalers"], "list watch"),
        rule([""], ["events"], "create"),
        rule([""], ["configmaps"], "create get update"),
    ]
    everywhere = [rule([""], ["nodes"], "list watch")]
    given = service_account(cluster, namespace, "recommender", folder, here=here, everywhere=everywhere)
    kubeconfig = stack.enter_context(given)
    targets = ", ".join(Workload(cluster, namespace, name).reference for name in NAMES)
    kind = f'proportional: {{linear: {{nodesPerReplica: 1}}, nodeSelector: "{pool.selector}"}}'
    top = f"state: {folder}/state\nleaderElection: {{enabled: false, namespace: {namespace}}}\n"
    path = folder / "recommender.yaml"
    replace_file(path, whole(entry("web", f"targets: [{targets}]", kind=kind), top=top))
    found = started(folder / "recommender.log", "run", f"--config={path}", f"--kubeconfig={kubeconfig}")
    stack.enter_context(found.process)
    cluster.wait_for("a decision", found.items)
    return found


def delays(program: Recommender, scalers: Autoscalers, size: int) -> str:
    """Wait until the size has been decided and all HPAs have followed; return how long each step took."""
    begin = time.monotonic()
    scalers.cluster.wait_for("the decision", lambda: program.items()["web"]["replicas"] == size, CHANGE_SECONDS)
    decided = time.monotonic()
    followed: dict[str, float] = {}

    def all_followed() -> bool:
        now = time.monotonic()
        for name, found in scalers.sizes().items():
            if found == size:
                followed.setdefault(name, now - decided)
        return len(followed) == len(NAMES)

    scalers.cluster.wait_for("the HPAs", all_followed, CHANGE_SECONDS, why_not=scalers.states)
    steps = ", ".join(f"{name} {followed[name]:.1f} s later" for name in NAMES)
    return (
        f"decided {decided - begin:.1f} s after the change of the nodes; {steps} (scrape each 1 s, HPA sync each 4 s)"
    )
