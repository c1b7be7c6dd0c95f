"""Doctor: whether a metrics adapter serves the recommendations to HPAs, through kube-apiserver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.reports.lines import CheckStatus, Line, error, ok, unknown
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError, StatusError
from recommender.decisions.policy_settings import Output
from recommender.decisions.tolerance import METRIC_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from recommender.decisions.policy_settings import RecommendationPolicy
    from recommender.decisions.record import TargetReference

_GROUP: Final = "external.metrics.k8s.io"
_RULES: Final = "give the adapter rules/adapter/recommendations.yaml (rules.shipped: [recommendations] of its chart)"


def look_at_metric(client: ObjectClient, policy: RecommendationPolicy, target: TargetReference) -> tuple[Line]:
    """Request the External metric of one target, as an HPA does."""
    name = f"adapter/{policy.name}/{target}"
    # An HPA is the only way to the target if the recommender does not scale it.
    status = CheckStatus.WARNING if Output.SCALE in policy.outputs else CheckStatus.ERROR
    path = f"/apis/{_GROUP}/v1beta1/namespaces/{target.namespace}/{METRIC_NAME}"
    selector = f"target_kind={target.kind},target_name={target.name}"
    try:
        document = client.get(path, {"labelSelector": selector}).document
    except NotFoundError:
        return (Line(name, status, f"no adapter serves the External metric {METRIC_NAME}", _RULES),)
    except ForbiddenError as e:
        fix = f"grant list on {METRIC_NAME}.{_GROUP}, or run this as a user who has it"
        return (unknown(name, f"reading it is forbidden: {e}", fix),)
    except StatusError as e:
        return (Line(name, status, f"the adapter does not answer: {e}", "run `tidewatch-adapter doctor`"),)
    except KubernetesError as e:
        return (unknown(name, f"it could not be read: {e}", "see the line about kube-apiserver"),)
    return (judge_metric(name, status, document),)


def judge_metric(name: str, status: CheckStatus, document: Mapping[str, Any]) -> Line:
    """Return the line about the values that arrived; `status` is that of a missing one."""
    items = document.get("items")
    if document.get("kind") != "ExternalMetricValueList" or not isinstance(items, list):
        fix = f"check which server is behind the APIService v1beta1.{_GROUP}"
        return error(name, "the answer is not a list of External metrics", fix)
    if not items:
        return Line(name, status, f"the adapter serves no {METRIC_NAME} for it", "see the line about its series")
    if len(items) > 1:
        return error(name, f"the adapter serves {len(items)} values, and an HPA adds them up", _RULES)
    return ok(name, f"the adapter serves {METRIC_NAME} {items[0].get('value')}")
