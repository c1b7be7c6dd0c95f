"""Pods with connections and an HPA, as readiness sidecars and kube-state-metrics show them."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from prometheus_client.parser import text_string_to_metric_families

from adapter.readiness.limit import connection_limit
from adapter.readiness.sidecar import own_metrics
from adapter.readiness.sidecar_state import SidecarState
from adapter.readiness.verdict import ReadinessRules

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMESPACE: Final = "chat"
NAME: Final = "gateway"
KIND: Final = "Deployment"
RECOMMENDATION: Final = "chat"
LIMIT: Final = 25_000
_POD_SUFFIXES: Final = "bcdfghjklmnp"
_UNEVEN_RATIO: Final = 0.15
_MOST_REPLICAS: Final = len(_POD_SUFFIXES)
_HPA: Final = {"namespace": NAMESPACE, "horizontalpodautoscaler": NAME}
_RULES: Final = ReadinessRules("websocket_connections", connection_limit(LIMIT, 0.95), stale_after_seconds=3.0)


class Fleet:
    """Pods that have a sidecar each."""

    def __init__(self) -> None:
        self._states = {f"{NAME}-7d9f8b6c5d-x2k4{suffix}": SidecarState(_RULES) for suffix in _POD_SUFFIXES}

    def text(self, load: float, replicas: int, desired: int) -> str:
        """Return a scrape of the HPA and of pods that share a load, of which the first has the most."""
        lines: list[str] = []
        for index, (pod, state) in enumerate(islice(self._states.items(), replicas)):
            share = 1 + _UNEVEN_RATIO * (1 - 2 * index / max(1, replicas - 1))
            state.update(partial(round, load / replicas * share))
            lines += _labelled_samples(own_metrics(state), {"namespace": NAMESPACE, "pod": pod})
        target = {"scaletargetref_kind": KIND, "scaletargetref_name": NAME}
        lines += [
            _line("kube_horizontalpodautoscaler_info", _HPA | target, 1),
            _line("kube_horizontalpodautoscaler_spec_max_replicas", _HPA, _MOST_REPLICAS),
            _line("kube_horizontalpodautoscaler_status_desired_replicas", _HPA, desired),
        ]
        return "".join(lines)


def _labelled_samples(text: str, labels: Mapping[str, str]) -> list[str]:
    """Return the samples with the labels that the scrape of a pod adds."""
    families = text_string_to_metric_families(text)
    return [_line(one.name, {**one.labels, **labels}, one.value) for family in families for one in family.samples]


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    pairs = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return f"{name}{{{pairs}}} {value}\n"
