"""Objects of the kind Recommendation for tests."""

from __future__ import annotations

from typing import Any, Final

from recommender.configuration.entry import Shared
from recommender.configuration.objects.object_reading import ObjectRefusal, RecommendationObject, read_object
from recommender.configuration.objects.object_settings import RecommendationObjectSettings
from recommender.decisions.policy_settings import Output, Owners
from recommender.kinds.kind import Recommendation

SHARED: Final = Shared(60.0, Owners(), has_prometheus=True, for_backtest=False)
SETTINGS: Final = RecommendationObjectSettings(enabled=True, outputs=frozenset(Output) - {Output.CAPACITY_BUFFER})
LOAD: Final[dict[str, Any]] = {
    "load": "sum(rate(requests_total[5m]))",
    "loadPerReplica": 100,
    "horizon": "2m",
    "maxReplicas": 9,
}
EACH: Final[dict[str, Any]] = LOAD | {
    "load": "sum by (namespace, app) (x)",
    "forEach": {"namespace": "namespace", "name": "app"},
}


def target(name: str = "web", **rest: str) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, **rest}


def linear(*targets: dict[str, str], **rest: object) -> dict[str, Any]:
    return {"proportional": {"linear": {"nodesPerReplica": 4}}, "targets": list(targets or [target()]), **rest}


def predictive(*targets: dict[str, str], **rest: object) -> dict[str, Any]:
    return {"predictive": LOAD, "targets": list(targets or [target()]), **rest}


def each(most: int | None = None) -> dict[str, Any]:
    name = {"namespace": "namespace", "name": "app"} | ({} if most is None else {"max": most})
    return {"predictive": EACH | {"forEach": name}}


def made(key: str = "shop/web", spec: object = None, created: str = "2026-01-01T00:00:00Z") -> RecommendationObject:
    """Return an object, by default with the spec `linear`."""
    namespace, _, name = key.partition("/")
    return RecommendationObject(namespace, name, f"uid-{key}", 1, created, linear() if spec is None else spec, {})


def read(
    spec: object, key: str = "shop/web", settings: RecommendationObjectSettings = SETTINGS
) -> Recommendation | ObjectRefusal:
    return read_object(made(key, spec), SHARED, settings)


def refused(spec: object, settings: RecommendationObjectSettings = SETTINGS) -> tuple[str, str]:
    """Return reason and message of the refusal."""
    found = read(spec, settings=settings)
    assert isinstance(found, ObjectRefusal), found
    return found.reason, found.message


def accepted(spec: object, key: str = "shop/web", settings: RecommendationObjectSettings = SETTINGS) -> Recommendation:
    found = read(spec, key, settings)
    assert isinstance(found, Recommendation), found
    return found
