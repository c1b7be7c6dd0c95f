"""A stand-in for kube-apiserver, for tests: lists, watches and discovery over real HTTP, as strict as the real one.

    with FakeApiServer() as server:
        kubeconfig = server.kubeconfig(folder / "config")   # reaches it with a token that it takes
        server.put("pods", "shop", "web-0", {"app": "web"})
        server.remove("pods", "shop", "web-0")
        server.compact()                                    # versions and continue tokens up to now are 410 from now on
        server.faults.append(Fault("watch", "cut"))         # the next watch loses its connection
        assert server.asked("list", "pods")                 # the requests so far
        assert server.watching("pods") == 1                 # the watches that are open now

What it keeps to, and a client must get right:

- Every change has a resourceVersion of its own, greater than all before. A list is of one version; its further pages
  are of the same version by a continue token, which expires with it (410) and must come without resourceVersion.
  With resourceVersion 0 the limit is ignored, as by servers that answer such lists from their cache.
- A watch tells every change after its resourceVersion, ends after `timeoutSeconds`, and sends bookmarks only when
  `allowWatchBookmarks` asks for them. A compacted version is refused by an ERROR event (410) in an answer of 200.
- 401 for a token that is not in `tokens`, 403 for no token (as system:anonymous) and by `forbid`, 405 for other verbs,
  406 when nothing that is accepted can be given, 404 for what is not served.
- `PartialObjectMetadata` is given where it is accepted and `metadata_only` is true, else whole objects.
- Token reviews and access reviews are answered as `reviews` says (`apiserver_reviews`); nothing else can be created.
- ConfigMaps may be read by the one name that `only_named` has: a list or watch without a field selector for it is 403.
- Values of parameters are checked. A parameter that the verb has no use for is refused with 400: the real server would
  ignore it, and a spelling mistake would go unseen.

Attributes to turn: `tokens`, `metadata_only`, `streams` (a watch may begin with the current objects), `aggregated`
(discovery in two documents), `stale` (groups whose own server is away), `bookmark_seconds`. `stop()` and `start()` take
it away and bring it back on the same port, with its state.
An exception inside of the server fails the test when the `with` block ends.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Self

import yaml

from adapter.foundation.objects.resources import BUILT_IN, Resource
from tests.support.apiserver_faults import Asked, Fault
from tests.support.apiserver_listener import Listener
from tests.support.apiserver_reviews import Reviews, TokenUser
from tests.support.apiserver_store import Store

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["TOKEN", "Asked", "FakeApiServer", "Fault", "TokenUser"]

TOKEN = "a-token-that-is-taken"


class FakeApiServer:
    """The server with its objects, and the settings of a test. Thread-safe."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        """With a `context` the server speaks TLS."""
        self.tokens = {TOKEN}
        self.metadata_only = True
        self.aggregated = True
        self.streams = False
        self.stale: set[str] = set()
        self.bookmark_seconds = 60.0
        self.faults: list[Fault] = []
        self.requests: list[Asked] = []
        self.errors: list[BaseException] = []
        self.resources: list[Resource] = list(BUILT_IN)
        self.forbidden: set[tuple[str, str]] = set()
        self.only_named = {"configmaps": "extension-apiserver-authentication"}
        self.reviews = Reviews()
        self.connections = 0
        self.store = Store()
        self._watches: list[str] = []
        self._context = context
        self._listener: Listener | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.stop()
        if self.errors and error is None:
            raise self.errors[0]

    @property
    def url(self) -> str:
        """Return the server's URL."""
        return f"{'https' if self._context else 'http'}://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen, after `stop` on the same port as before."""
        self._listener = Listener(self, self._port, self._context)
        self._port = self._listener.server_address[1]
        threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening, and cut the open connections."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.end()
            self.store.wake()

    def kubeconfig(self, path: Path, user: Mapping[str, Any] | None = None, ca_file: Path | None = None) -> Path:
        """Write a kubeconfig; `user` is its user entry, by default one with an accepted token."""
        cluster = {"server": self.url} | ({"certificate-authority": str(ca_file)} if ca_file else {})
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": dict(user) if user is not None else {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        path.write_text(yaml.safe_dump(content))
        return path

    def put(self, plural: str, namespace: str, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create or update an object; `namespace` is empty for a cluster-scoped kind."""
        self.store.put(self._resource(plural), namespace, name, labels or {})

    def put_config_map(self, namespace: str, name: str, data: Mapping[str, str] | None) -> None:
        """Create or update a ConfigMap; without data if `data` is None."""
        self.store.put(self._resource("configmaps"), namespace, name, {}, {} if data is None else {"data": dict(data)})

    def remove(self, plural: str, namespace: str, name: str) -> None:
        """Delete an object."""
        self.store.remove(self._resource(plural), namespace, name)

    def compact(self) -> None:
        """Expire all versions before the current one, and all continue tokens."""
        self.store.compact()

    def expire_watches(self) -> None:
        """Send all open watches an ERROR event that says their version is too old, as to a watch that fell behind."""
        self.store.expire_watches()

    def define(self, resource: Resource) -> None:
        """Serve one more kind."""
        self.resources.append(resource)

    def forbid(self, verb: str, plural: str) -> None:
        """Answer 403 to `list` or `watch` of the kind, or `create` of reviews, until `allow`."""
        self.forbidden.add((verb, plural))

    def allow(self, verb: str, plural: str) -> None:
        """Undo `forbid`."""
        self.forbidden.discard((verb, plural))

    def asked(self, verb: str, plural: str = "") -> list[Asked]:
        """Return the requests so far of this verb, for this kind."""
        return [asked for asked in list(self.requests) if asked.verb == verb and asked.path.endswith(plural)]

    def watching(self, plural: str) -> int:
        """Return how many watches of the kind are open."""
        return self._watches.count(plural)

    @contextlib.contextmanager
    def counted_watch(self, plural: str) -> Iterator[None]:
        """Count a watch as open during the block."""
        self._watches.append(plural)
        try:
            yield
        finally:
            self._watches.remove(plural)

    def take_fault(self, verb: str) -> Fault | None:
        """Return the fault that applies to this request."""
        with self.store.changed:
            for fault in self.faults:
                if fault.verb != verb:
                    continue
                if fault.skip:
                    fault.skip -= 1
                    return None
                fault.times -= 1
                if not fault.times:
                    self.faults.remove(fault)
                return fault
        return None

    def _resource(self, plural: str) -> Resource:
        return next(resource for resource in self.resources if resource.plural == plural)
