"""Writes requests of containers: to the pods in place if the API server supports it, else to the workload's template.

A resize in place leaves the template as it is: a new pod starts with the requests of the template and is resized
afterwards. A changed template is rolled out by the workload's controller with the strategy of the workload; a
PodDisruptionBudget does not limit a rollout.
"""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.objects.quantities import QuantityError
from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError
from adapter.foundation.sources.kubernetes.errors import (
    KubernetesError,
    NotFoundError,
    StatusError,
    UnexpectedResponseError,
)
from adapter.foundation.sources.kubernetes.lists.small_list import items_of_list
from recommender.decisions.constraints.pauses import ANNOTATION, read_pause
from recommender.decisions.policy_settings import Direction
from recommender.decisions.targets.vertical_autoscalers import GROUP, KIND, PLURAL, active_autoscalers, autoscaler_of
from recommender.outputs.pod_resizes import resized_pods, unfinished_resize
from recommender.outputs.resize_admission import limit_range_refusal, needs_room_first, quota_refusal, with_defaults
from recommender.outputs.resize_documents import (
    can_be_resized,
    is_rolling_out,
    is_running,
    labels_of_selector,
    manager_of_resources,
    objects_controlled_by,
    resized_containers,
)
from recommender.outputs.scale_documents import target_path, uid_of
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import (
    READ_SECONDS,
    ScaleOutcome,
    SendingTerms,
    failed_outcome,
    send_write,
    stored_first,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.kubernetes.writing import Fence, GetsAndReplaces, Lists
    from recommender.outputs.pending_writes import PendingWrite, Resizing

MOST_PODS: Final = 50
"""The maximum number of pods that one attempt resizes; the others follow in the next attempts."""
MOST_TRIED: Final = 200
"""The maximum number of pods that one attempt tries to resize, including those that are refused."""
_TURN_SECONDS: Final = 300.0
"""How long attempts begin with the same pod. Then another is first, so that refused pods do not block the others."""
_ROLLED_OUT: Final = "templates changed, which the controller rolls out"
_REFUSALS: Final = frozenset({HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.FORBIDDEN})
"""Statuses of refusals: a LimitRange or a ResourceQuota forbids the request, or it is invalid in itself."""
_CORE: Final = "/api/v1"
_AUTOSCALERS: Final = f"/apis/{GROUP}/v1/namespaces/{{}}/{PLURAL}"


class _RefusedError(Exception):
    """The requests must not be written; the message says why."""

    def __init__(self, message: str, owner: str | None = None) -> None:
        super().__init__(message)
        self.owner = owner


class ResizeAttempt:
    """Writes the requests of a workload's containers."""

    def __init__(
        self, reader: Lists, objects: GetsAndReplaces, resolve: ResolveResource, wall: Callable[[], float]
    ) -> None:
        self._wall = wall
        self._reader = reader
        self._objects = objects
        self._resolve = resolve

    def __call__(self, write: PendingWrite, terms: SendingTerms) -> ScaleOutcome:
        """Read the workload, and write the requests that differ enough unless something else owns or forbids them."""
        found = ScaleOutcome(write, ScaleResult.ERROR)
        try:
            path = target_path(write.target, self._resolve)
            workload = self._objects.get(path, seconds=READ_SECONDS).document
            found = replace(found, uid=uid_of(workload))
            documents, message = self._changes(write, workload, path)
        except _RefusedError as error:
            return replace(found, result=ScaleResult.REFUSED, owner=error.owner, message=str(error))
        except (UnknownResourceError, KubernetesError, QuantityError, FactError) as error:
            return failed_outcome(found, error)
        if not documents:
            return replace(found, result=ScaleResult.UNCHANGED)
        stored = stored_first(found, terms)
        return self._send_resize(found, terms, documents, message) if stored.result is ScaleResult.OK else stored

    def _changes(
        self, write: PendingWrite, workload: dict[str, Any], path: str
    ) -> tuple[dict[str, dict[str, Any]], str]:
        """Return the changed documents by their paths, and a text about their effect.

        Raises _RefusedError if the requests must not be written.
        """
        assert write.resizing is not None, "the write is one of requests"
        resizing = _without_paused(write.resizing, workload, self._wall())
        self._refuse_owned(write)
        if not (resizing.in_place and self._can_resize_pods()):
            return self._changed_template(write, workload, resizing, path), _ROLLED_OUT
        pods = self._pods_of(write, workload)
        able = [pod for pod in pods if can_be_resized(pod, resizing)]
        documents = self._changed_template(write, workload, resizing, path) if len(able) < len(pods) else {}
        if documents:
            return documents, _ROLLED_OUT
        documents = self._resized_pods(write.target.namespace, able, resizing)
        # The API server takes what a node can never do, such as other CPUs for a pod that has some for itself.
        unfinished = "" if documents else unfinished_resize(able)
        if unfinished:
            raise _RefusedError(unfinished)
        return documents, "pods resized in place"

    def _changed_template(
        self, write: PendingWrite, workload: dict[str, Any], resizing: Resizing, path: str
    ) -> dict[str, dict[str, Any]]:
        """Return the workload with the changed template by its path; empty if the template does not change now.

        Raises _RefusedError if the namespace forbids the new pods or another field manager keeps writing the resources.
        """
        documents = _resized_template(workload, resizing, path)
        if documents:
            self._refuse_forbidden(write.target.namespace, workload, documents[path])
        return documents

    def _send_resize(
        self, found: ScaleOutcome, terms: SendingTerms, documents: Mapping[str, dict[str, Any]], message: str
    ) -> ScaleOutcome:
        refusals: list[str] = []
        written: list[str] = []
        outcome = send_write(found, terms, lambda fence: self._write(documents, fence, refusals, written))
        if outcome.result is not ScaleResult.OK:
            return outcome
        if refusals and len(written) < MOST_PODS:
            # The same requests would be refused again.
            return replace(outcome, result=ScaleResult.REFUSED, message=refusals[0])
        return replace(outcome, message=f"{len(written)} {message}: {found.write.reason}")

    def _refuse_owned(self, write: PendingWrite) -> None:
        """Raise _RefusedError if a VerticalPodAutoscaler writes the requests."""
        try:
            autoscalers = self._items(_AUTOSCALERS.format(write.target.namespace), KIND, f"{GROUP}/v1")
        except NotFoundError:
            return
        found = autoscaler_of(active_autoscalers(autoscalers), write.target)
        if found is not None:
            owner = found.full_name
            raise _RefusedError(f"{owner} writes its requests: {found.remedy}, or remove resize", owner)

    def _refuse_forbidden(self, namespace: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Raise _RefusedError if the namespace forbids pods of the changed template: the rollout would stall."""
        core, spec = f"/api/v1/namespaces/{namespace}", before["spec"]
        ranges = self._items(f"{core}/limitranges", "LimitRange")
        old, new = (with_defaults(each["spec"]["template"]["spec"], ranges) for each in (before, after))
        reason = limit_range_refusal(new, ranges)
        if not reason:
            scheduled = (before.get("status") or {}).get("desiredNumberScheduled")
            pods = int((scheduled if before.get("kind") == "DaemonSet" else spec.get("replicas", 1)) or 0)
            quotas = self._items(f"{core}/resourcequotas", "ResourceQuota")
            reason = quota_refusal(old, new, pods, quotas, needs_room_first=needs_room_first(before, pods))
        if reason:
            raise _RefusedError(reason)

    def _can_resize_pods(self) -> bool:
        served = self._reader.get(_CORE, seconds=READ_SECONDS).document
        if served.get("kind") != "APIResourceList":
            # Without the subresource, all pods would be replaced.
            raise UnexpectedResponseError(f"GET {_CORE}: the answer is not an APIResourceList")
        return any(each.get("name") == "pods/resize" for each in served.get("resources") or ())

    def _pods_of(self, write: PendingWrite, workload: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the running pods of the workload."""
        namespace, selector = write.target.namespace, {"labelSelector": labels_of_selector(workload)}
        owners = frozenset({uid_of(workload)})
        if write.target.kind == "Deployment":
            path = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
            owners = frozenset(
                uid_of(each)
                for each in objects_controlled_by(self._items(path, "ReplicaSet", "apps/v1", selector), owners)
            )
        pods = objects_controlled_by(self._items(f"/api/v1/namespaces/{namespace}/pods", "Pod", query=selector), owners)
        return [pod for pod in pods if is_running(pod)]

    def _resized_pods(
        self, namespace: str, pods: list[dict[str, Any]], resizing: Resizing
    ) -> dict[str, dict[str, Any]]:
        """Return at most `MOST_TRIED` pods that change, by the path of their `resize` subresource."""
        return {
            f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/resize": {
                "apiVersion": "v1", "kind": "Pod", **pod
            }
            for pod in resized_pods(pods, resizing, turn=int(self._wall() // _TURN_SECONDS))[:MOST_TRIED]
        }  # fmt: skip

    def _items(
        self, path: str, kind: str, api_version: str = "v1", query: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        document = self._reader.get(path, query, seconds=READ_SECONDS).document
        return items_of_list(path, document, kind, api_version)

    def _write(
        self, documents: Mapping[str, dict[str, Any]], fence: Fence, refusals: list[str], written: list[str]
    ) -> None:
        """Write the documents until `MOST_PODS` are `written`, and add refusals of the API server to `refusals`.

        After any other StatusError, the remaining documents are still written; the last such error is then raised.
        """
        problem: StatusError | None = None
        for path, document in documents.items():
            if len(written) >= MOST_PODS:
                break
            try:
                self._objects.replace(path, document, fence)
                written.append(path)
            except NotFoundError:
                # The pod was deleted meanwhile.
                continue
            except StatusError as error:
                if error.code in _REFUSALS:
                    refusals.append(str(error))
                else:
                    problem = error
        if problem is not None:
            raise problem


def _resized_template(workload: dict[str, Any], resizing: Resizing, path: str) -> dict[str, dict[str, Any]]:
    """Return the workload with the changed template by its path; empty if nothing changes or a rollout is under way.

    Raises _RefusedError if a field manager in `resizing.managers` keeps writing the resources of the template.
    """
    spec = workload["spec"]
    template = spec["template"]
    before = template["spec"]["containers"]
    after = resized_containers(before, resizing)
    if after == before or is_rolling_out(workload):
        # A rollout that is under way must end first.
        return {}
    manager = manager_of_resources(workload, resizing.managers)
    if manager:
        fix = "let it ignore resources, or remove it from owners"
        raise _RefusedError(f"field manager {manager} keeps writing the resources of its template: {fix}", manager)
    template = {**template, "spec": {**template["spec"], "containers": after}}
    return {path: {**workload, "spec": {**spec, "template": template}}}


def _without_paused(resizing: Resizing, workload: Mapping[str, Any], now: float) -> Resizing:
    """Return the resizing without the directions that the pause annotation of the workload forbids.

    Raises _RefusedError if the annotation pauses both directions or cannot be read.
    """
    text = ((workload.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    if text is None:
        return resizing
    try:
        pause = read_pause(str(text))
    except ValueError as error:
        raise _RefusedError(f"paused by the annotation {ANNOTATION}, which cannot be read: {error}") from error
    if pause is None or (pause.until is not None and pause.until <= now):
        return resizing
    if pause.direction is Direction.BOTH:
        raise _RefusedError(f"paused by the annotation {ANNOTATION}")
    return replace(
        resizing,
        up=resizing.up and pause.direction is Direction.DOWN,
        down=resizing.down and pause.direction is Direction.UP,
    )
