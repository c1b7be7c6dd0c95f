"""The stand-in's loop: one thread does what is due for every pod, so that no pod needs a lock."""

from __future__ import annotations

import contextlib
import itertools
import queue
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import urllib3.exceptions

from tests.e2e.controlplane.client import ApiError
from tests.e2e.controlplane.kubelet.ordinary import OrdinaryPod, ordinary_address, start_up_seconds, started_at
from tests.e2e.controlplane.kubelet.process_pod import ProcessPod
from tests.e2e.controlplane.kubelet.sandbox import SandboxError
from tests.e2e.controlplane.kubelet.settings import image_of
from tests.e2e.controlplane.kubelet.spec import RefusedError
from tests.e2e.controlplane.kubelet.status import ContainerState, moment, pod_status, same_conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.e2e.controlplane.client import ApiClient, Document
    from tests.e2e.controlplane.kubelet.settings import Image, Settings

_TICK_SECONDS: Final = 0.05
_RETRY_SECONDS: Final = 0.5
# What was missing may have come: charts make pods and what they mount in one go.
_ADMIT_AGAIN_SECONDS: Final = 1.0
_DEFAULT_SCHEDULER: Final = "default-scheduler"


@dataclass(frozen=True, slots=True)
class _Refusal:
    pod: Document
    why: str
    again_at: float


class Kubelet:
    """The pods of all nodes. `post` may be called from any thread, and everything else from one thread."""

    def __init__(self, settings: Settings, client: ApiClient) -> None:
        self._settings = settings
        self._client = client
        self._todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._again: list[tuple[float, Document]] = []
        self._running: dict[str, ProcessPod] = {}
        self._ordinary: dict[str, OrdinaryPod] = {}
        self._refused: dict[str, _Refusal] = {}
        self._unsettled: set[str] = set()
        self._remove_at: dict[str, float] = {}
        self._written: dict[str, Document] = {}
        self._node_names: dict[str, str] = {}
        """The names of nodes by uid."""
        self._node_addresses: dict[str, str] = {}
        """The addresses of nodes by name."""
        self._awaiting_node: dict[str, Document] = {}
        self._numbers = itertools.count()

    def post(self, call: Callable[[], None]) -> None:
        """Have the loop make this call."""
        self._todo.put(call)

    def run(self, is_ended: Callable[[], bool]) -> None:
        """Work until `is_ended` returns true."""
        while not is_ended():
            try:
                self._todo.get(timeout=_TICK_SECONDS)()
                while not self._todo.empty():
                    self._todo.get()()
            except queue.Empty:
                pass
            self._advance()

    def close(self) -> None:
        """End all processes of pods."""
        for pod in self._running.values():
            pod.close()

    def node_changed(self, node: Document) -> None:
        """Process a node as it is now."""
        addresses = {one["type"]: one["address"] for one in node["status"].get("addresses") or []}
        name = self._node_names[node["metadata"]["uid"]] = node["metadata"]["name"]
        self._node_addresses[name] = addresses.get("InternalIP", self._settings.address)
        for pod in [pod for pod in self._awaiting_node.values() if pod["spec"]["nodeName"] == name]:
            del self._awaiting_node[pod["metadata"]["uid"]]
            self.changed(pod)

    def node_gone(self, uid: str) -> None:
        """Remove the pods of a node that no longer exists."""
        name = self._node_names.pop(uid)
        del self._node_addresses[name]
        known = [one.pod for group in (self._running, self._ordinary, self._refused) for one in group.values()]
        for pod in [pod for pod in known if pod["spec"]["nodeName"] == name]:
            self.changed(pod)

    def changed(self, pod: Document) -> None:
        """Process a pod as it is now."""
        try:
            self._take(pod)
        except (ApiError, urllib3.exceptions.HTTPError) as e:
            if isinstance(e, ApiError) and e.status in (404, 409):
                # It is gone, or somebody else has bound it: the watch tells.
                return
            self._again.append((time.monotonic() + _RETRY_SECONDS, pod))

    def gone(self, uid: str) -> None:
        """Forget a pod that no longer exists."""
        if pod := self._running.pop(uid, None):
            pod.close()
        self._ordinary.pop(uid, None)
        self._refused.pop(uid, None)
        self._written.pop(uid, None)
        self._remove_at.pop(uid, None)
        self._unsettled.discard(uid)
        self._awaiting_node.pop(uid, None)
        self._again = [(at, pod) for at, pod in self._again if pod["metadata"]["uid"] != uid]

    def _take(self, pod: Document) -> None:
        uid, spec = pod["metadata"]["uid"], pod["spec"]
        if pod["metadata"].get("deletionTimestamp"):
            self._end(pod)
        elif not spec.get("nodeName"):
            if self._is_ours_to_bind(spec):
                self._bind(pod)
        elif spec["nodeName"] not in self._node_addresses:
            if uid in self._running or uid in self._ordinary or uid in self._refused:
                # Its node has been deleted.
                self._remove(pod)
            else:
                self._awaiting_node[uid] = pod
        elif known := self._ordinary.get(uid):
            self._ordinary[uid] = OrdinaryPod(pod, known.address, known.ready_at, known.started)
            self._unsettled.add(uid)
        elif uid not in self._running and uid not in self._refused:
            self._admit(pod)

    def _is_ours_to_bind(self, spec: Document) -> bool:
        """Return whether no scheduler is responsible for the pod."""
        takes = self._settings.takes_unscheduled_pods and not spec.get("schedulingGates")
        return takes and spec.get("schedulerName", _DEFAULT_SCHEDULER) == _DEFAULT_SCHEDULER

    def _admit(self, pod: Document) -> None:
        images = {
            container["name"]: image
            for container in pod["spec"]["containers"]
            if (image := image_of(self._settings, container["image"]))
        }
        if not images:
            self._admit_ordinary(pod)
            return
        try:
            self._admit_processes(pod, images)
        except (RefusedError, SandboxError, OSError) as e:
            self._refuse(pod, str(e))

    def _admit_ordinary(self, pod: Document) -> None:
        seconds = start_up_seconds(pod, self._settings.start_up_seconds)
        self._unsettled.add(pod["metadata"]["uid"])
        self._ordinary[pod["metadata"]["uid"]] = OrdinaryPod(
            pod, ordinary_address(next(self._numbers)), time.monotonic() + seconds, started_at(time.time(), seconds)
        )

    def _admit_processes(self, pod: Document, images: dict[str, Image]) -> None:
        if not self._settings.runs_pods:
            raise RefusedError("pods cannot run as processes here: this machine allows no namespaces")
        if others := [found["name"] for found in pod["spec"]["containers"] if found["name"] not in images]:
            raise RefusedError(f"nothing stands for the image of container {', '.join(others)}")
        number = next(self._numbers)
        self._running[pod["metadata"]["uid"]] = ProcessPod(pod, images, self._settings, self._client, number, self.post)

    def _refuse(self, pod: Document, why: str) -> None:
        uid = pod["metadata"]["uid"]
        if (known := self._refused.get(uid)) is None or known.why != why:
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            print(f"pod {name}: {why}", file=sys.stderr, flush=True)  # noqa: T201 - the log of this process
        self._refused[uid] = _Refusal(pod, why, time.monotonic() + _ADMIT_AGAIN_SECONDS)

    def _bind(self, pod: Document) -> None:
        metadata = pod["metadata"]
        self._client.create(
            f"{_path(pod)}/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": metadata["name"], "uid": metadata["uid"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": self._settings.node},
            },
        )

    def _end(self, pod: Document) -> None:
        uid = pod["metadata"]["uid"]
        if running := self._running.get(uid):
            running.end(time.monotonic(), pod["metadata"].get("deletionGracePeriodSeconds", 0))
        else:
            self._remove(pod)

    def _remove(self, pod: Document) -> None:
        uid = pod["metadata"]["uid"]
        self._client.delete(_path(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})

    def _advance(self) -> None:
        now = time.monotonic()
        due = [pod for at, pod in self._again if now >= at]
        self._again = [(at, pod) for at, pod in self._again if now < at]
        for pod in due:
            self.changed(pod)
        for uid, running in list(self._running.items()):
            self._advance_running(uid, running, now)
        for uid in list(self._unsettled):
            self._advance_ordinary(uid, self._ordinary[uid], now)
        for uid, refusal in list(self._refused.items()):
            self._advance_refused(uid, refusal, now)

    def _advance_running(self, uid: str, running: ProcessPod, now: float) -> None:
        try:
            # Volumes stay as they are while the API server is away.
            with contextlib.suppress(ApiError, urllib3.exceptions.HTTPError):
                running.advance(now, time.time())
        except (RefusedError, OSError) as e:
            running.close()
            del self._running[uid]
            self._refuse(running.pod, str(e))
            return
        self._tell(uid, running.pod, running.states(), running.address)
        if running.has_ended and now >= self._remove_at.get(uid, 0.0):
            self._remove_at[uid] = now + _RETRY_SECONDS
            with contextlib.suppress(ApiError, urllib3.exceptions.HTTPError):
                self._remove(running.pod)

    def _advance_ordinary(self, uid: str, ordinary: OrdinaryPod, now: float) -> None:
        told = self._tell(uid, ordinary.pod, ordinary.states(now), ordinary.address)
        if told and now >= ordinary.ready_at:
            self._unsettled.discard(uid)

    def _advance_refused(self, uid: str, refusal: _Refusal, now: float) -> None:
        states = [_state_of_refused(container, refusal.why) for container in refusal.pod["spec"]["containers"]]
        self._tell(uid, refusal.pod, states, None)
        if now >= refusal.again_at:
            self._admit(refusal.pod)
            if uid in self._running:
                del self._refused[uid]

    def _tell(self, uid: str, pod: Document, states: Sequence[ContainerState], address: str | None) -> bool:
        """Write the pod's status if it has changed; return whether the API server has it."""
        now = moment(time.time())
        before = self._written.get(uid, {})
        started = before.get("startTime", now)
        host = self._node_addresses.get(pod["spec"]["nodeName"], self._settings.address)
        status = same_conditions(before, pod_status(states, host, address, started, now))
        if status == before:
            return True
        try:
            self._client.merge(f"{_path(pod)}/status", {"metadata": {"uid": uid}, "status": status})
        except (ApiError, urllib3.exceptions.HTTPError):
            # The next round tries again; a pod that is gone is forgotten by then.
            return False
        self._written[uid] = status
        return True


def _state_of_refused(container: Document, why: str) -> ContainerState:
    return ContainerState(
        container["name"], container["image"], ready=False, restarts=0, reason="CreateContainerConfigError", message=why
    )


def _path(pod: Document) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
