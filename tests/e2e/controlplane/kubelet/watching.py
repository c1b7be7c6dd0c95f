"""Follows a collection in a thread of its own and passes each event on; it survives restarts of the API server."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final

import urllib3.exceptions

from tests.e2e.controlplane.client import ApiError
from tests.support.waiting import rounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.controlplane.client import ApiClient, Document

_PAUSE_SECONDS: Final = 0.2


class Watch:
    """Calls `changed` for each object that exists or has changed, and `gone` with the uid of each deleted one."""

    def __init__(
        self, client: ApiClient, path: str, changed: Callable[[Document], None], gone: Callable[[str], None]
    ) -> None:
        self._client = client
        self._path = path
        self._changed = changed
        self._gone = gone
        self._known: set[str] = set()
        self._thread = threading.Thread(target=self._run, name=f"watch of {path}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        for _ in rounds(_PAUSE_SECONDS):
            # The API server may be away, or the version too old, or an event cut off: list anew.
            with contextlib.suppress(urllib3.exceptions.HTTPError, ApiError, ValueError):
                self._follow(self._list())

    def _list(self) -> str:
        found = self._client.get(self._path)
        seen = {one["metadata"]["uid"] for one in found["items"]}
        for uid in self._known - seen:
            self._gone(uid)
        self._known = seen
        for one in found["items"]:
            self._changed(one)
        return str(found["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        while True:
            with self._client.watch(self._path, version) as events:
                for event in events:
                    version = self._take(event)

    def _take(self, event: Document) -> str:
        found = event["object"]
        if event["type"] == "ERROR":
            raise ValueError(found.get("message"))
        uid = found["metadata"]["uid"]
        if event["type"] == "DELETED":
            self._known.discard(uid)
            self._gone(uid)
        else:
            self._known.add(uid)
            self._changed(found)
        return str(found["metadata"]["resourceVersion"])
