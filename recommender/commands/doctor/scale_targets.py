"""Doctor: checks that targets exist and can be scaled, who owns their sizes, and which changes HPAs may ignore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Autoscaler, Observed
from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError
from adapter.foundation.reports.counts import count_of
from adapter.foundation.reports.lines import SEE_APISERVER, Line, error, ok, unknown, warning
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError, NotServedError
from recommender.decisions.constraints.tolerance import DEFAULT_TOLERANCE_RATIO, follows
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.targets.owners import refusal_of
from recommender.outputs.scale_documents import ScaleDocumentError, replicas_of, target_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.record import TargetReference

_ROUNDING: Final = 1e-9


def look_at_target(
    client: ObjectClient, resolve: ResolveResource, recommendation: str, target: TargetReference, *, is_scaled: bool
) -> tuple[Line]:
    """Read a target's scale subresource, or only the object if no replicas are recommended for it."""
    name = f"target/{recommendation}/{target}"
    try:
        path = target_path(target, resolve)
    except UnknownResourceError as e:
        return (_not_served(name, e),)
    if not is_scaled:
        return (_look_at_object(client, path, name, target.namespace),)
    try:
        replicas = replicas_of(client.get(f"{path}/scale").document)
    except NotFoundError:
        return (_without_scale(client, path, name),)
    except ForbiddenError as e:
        fix = f"grant get on its scale subresource in {target.namespace}, or run this as a user who has it"
        return (unknown(name, f"reading its scale is forbidden: {e}", fix),)
    except (KubernetesError, ScaleDocumentError) as e:
        return (unknown(name, f"its scale could not be read: {e}", SEE_APISERVER),)
    return (ok(name, f"it exists, and its scale has {count_of(replicas, 'replica')}"),)


def _look_at_object(client: ObjectClient, path: str, name: str, namespace: str) -> Line:
    try:
        client.get(path)
    except NotServedError as e:
        return _not_served(name, e)
    except NotFoundError:
        return _absent(name)
    except ForbiddenError as e:
        return unknown(
            name, f"reading it is forbidden: {e}", f"grant get on it in {namespace}, or run this as another user"
        )
    except KubernetesError as e:
        return unknown(name, f"it could not be read: {e}", SEE_APISERVER)
    return ok(name, "it exists")


def _not_served(name: str, problem: Exception) -> Line:
    return error(name, f"the cluster does not serve it: {problem}", "correct apiVersion and kind, or install the CRD")


def _absent(name: str) -> Line:
    return error(name, "it does not exist", "correct the target's namespace and name, or create it")


def _without_scale(client: ObjectClient, path: str, name: str) -> Line:
    """Return the line about a target without a scale: either the object is missing, or its kind has none."""
    try:
        client.get(path)
    except NotServedError as e:
        return _not_served(name, e)
    except NotFoundError:
        return _absent(name)
    except KubernetesError as e:
        fix = "check whether the target exists and its kind has the scale subresource"
        return error(name, f"its scale does not exist, and the object could not be read: {e}", fix)
    fix = "name an object with a scale subresource; a CRD states it under `subresources`"
    return error(name, "it exists, and its kind has no scale subresource", fix)


def judge_owners(policy: RecommendationPolicy, inputs: Inputs, now: float) -> Iterator[Line]:
    """Yield a line for each target that the recommendation scales, on whether something else owns its size."""
    for target in policy.targets if Output.SCALE in policy.outputs else ():
        name = f"owner/{policy.name}/{target}"
        refusal = refusal_of(policy, target, inputs, now)
        if refusal is None:
            yield ok(name, "nothing else scales it")
        elif refusal.owner is None:
            yield unknown(name, refusal.message, "see the lines about permissions; until it is known, it is refused")
        else:
            message, _, fix = refusal.message.rpartition(": ")
            yield error(name, f"it is refused: {message}", fix)


def judge_tolerances(policy: RecommendationPolicy, inputs: Inputs) -> Iterator[Line]:
    """Yield a line for each HPA that follows the recommendation, on the changes that it ignores."""
    for target in policy.targets if Output.METRIC in policy.outputs else ():
        state = inputs.targets.get(target)
        autoscalers = inputs.cluster.autoscalers.get(target.namespace)
        if not isinstance(state, Observed) or state.value is None or not isinstance(autoscalers, Observed):
            continue
        for autoscaler in autoscalers.value:
            if follows(autoscaler, policy.name, target):
                yield _tolerance(autoscaler, state.value.replicas)


def _tolerance(autoscaler: Autoscaler, replicas: int) -> Line:
    """Return the line about the changes that an HPA ignores at the current size."""
    name = f"tolerance/{autoscaler.namespace}/{autoscaler.name}"
    highest = _farthest(replicas, autoscaler.scale_up_tolerance_ratio, 1)
    lowest = _farthest(replicas, autoscaler.scale_down_tolerance_ratio, -1)
    if highest == lowest:
        return ok(name, f"at the size {replicas}, the HPA follows a change of one replica")
    fix = "set behavior.scaleUp.tolerance and behavior.scaleDown.tolerance to 0 (Kubernetes 1.35), or use output scale"
    return warning(name, f"at the size {replicas}, the HPA ignores recommendations from {lowest} to {highest}", fix)


def _farthest(replicas: int, ratio: float | None, direction: int) -> int:
    """Return the size farthest from the current one that is still within the tolerance."""
    tolerance = DEFAULT_TOLERANCE_RATIO if ratio is None else ratio
    return replicas + direction * int(tolerance * replicas + _ROUNDING)
