"""The documented health checks of Argo CD, run by a real Lua on statuses that the programs write."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import pytest
import yaml
from lupa.lua51 import LuaRuntime

from recommender.configuration.objects.object_reading import ObjectRefusal
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.record import Record, Status, TargetAction, TargetOutcome, TargetReference
from recommender.running.objects.object_status import decided_status, refused_status
from tests.recommender.configuration.objects.objects import made
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOW: Final = 1_767_225_600.0
_WEB: Final = TargetReference("apps/v1", "Deployment", "shop", "web")
_POLICY: Final = RecommendationPolicy("shop/web", "proportional", (_WEB,), frozenset({Output.SCALE}), namespace="shop")
_OUTCOMES: Final = (TargetOutcome(_WEB, 2, TargetAction.SCALE, recommended_replicas=3),)
_RECORD: Final = Record("shop/web", "proportional", _NOW, Status.OK, "nodes count", replicas=3, targets=_OUTCOMES)
_STALE: Final = replace(_RECORD, status=Status.STALE, replicas=None, message="Prometheus does not answer")
_REFUSAL: Final = ObjectRefusal("QuotaExceeded", "the namespace has 20 objects")
_KINDS: Final = ("Recommendation", "MetricRule")


def health_of(kind: str, status: dict[str, Any] | None, generation: int = 1) -> tuple[str, str]:
    """Return what Argo CD would show of an object."""
    page = (CHECKOUT / "docs" / "recommendation-objects.md").read_text()
    (block,) = [text for text in re.findall(r"```yaml\n(.+?)```", page, re.DOTALL) if "argocd-cm" in text]
    script = yaml.safe_load(block)["data"][f"resource.customizations.health.tidewatch.io_{kind}"]
    lua = LuaRuntime(unpack_returned_tuples=False)
    manifest = {"metadata": {"generation": generation}} | ({} if status is None else {"status": status})
    lua.globals()["obj"] = lua.table_from(manifest, recursive=True)
    found = cast("Mapping[str, str]", lua.execute(script))
    return found["status"], found["message"]


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize(
    ("status", "generation", "health"),
    [
        (decided_status(made(), _POLICY, [_RECORD], _NOW), 1, ("Healthy", "nodes count")),
        (decided_status(made(), _POLICY, [_STALE], _NOW), 1, ("Progressing", "Prometheus does not answer")),
        (refused_status(made(), _REFUSAL, _NOW), 1, ("Degraded", "the namespace has 20 objects")),
        # The status is that of the object before it was changed.
        (refused_status(made(), _REFUSAL, _NOW), 2, ("Progressing", "There is no status of this generation yet.")),
        (None, 1, ("Progressing", "There is no status of this generation yet.")),
        ({"observedGeneration": -1}, 1, ("Progressing", "There is no status of this generation yet.")),
    ],
    ids=["ready", "stale", "refused", "changed", "new", "default"],
)
def test_a_status_has_its_health(
    kind: str, status: dict[str, Any] | None, generation: int, health: tuple[str, str]
) -> None:
    assert health_of(kind, status, generation) == health
