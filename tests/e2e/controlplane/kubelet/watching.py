"""Follows the cluster's pods in a thread of its own and hands each event on; it survives restarts of the API server."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

import urllib3.exceptions

from tests.e2e.controlplane.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.controlplane.client import ApiClient, Document

PODS: Final = "/api/v1/pods"
_PAUSE_SECONDS: Final = 0.2


class PodWatch:
    """Calls `changed` for each pod that is there or has changed, and `gone` with the uid of each that is not."""

    def __init__(self, client: ApiClient, changed: Callable[[Document], None], gone: Callable[[str], None]) -> None:
        self._client = client
        self._changed = changed
        self._gone = gone
        self._known: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="pod watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                self._follow(self._list())
            except (urllib3.exceptions.HTTPError, ApiError, ValueError):
                # The API server is away, or the version is too old, or an event was cut off: list anew.
                time.sleep(_PAUSE_SECONDS)

    def _list(self) -> str:
        found = self._client.get(PODS)
        seen = {pod["metadata"]["uid"] for pod in found["items"]}
        for uid in self._known - seen:
            self._gone(uid)
        self._known = seen
        for pod in found["items"]:
            self._changed(pod)
        return str(found["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        while True:
            with self._client.watch(PODS, version) as events:
                for event in events:
                    version = self._take(event)

    def _take(self, event: Document) -> str:
        pod = event["object"]
        if event["type"] == "ERROR":
            raise ValueError(pod.get("message"))
        uid = pod["metadata"]["uid"]
        if event["type"] == "DELETED":
            self._known.discard(uid)
            self._gone(uid)
        else:
            self._known.add(uid)
            self._changed(pod)
        return str(pod["metadata"]["resourceVersion"])
