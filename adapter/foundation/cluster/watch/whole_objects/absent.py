"""Fetches objects that were beyond a quota when the watch reported them, once they are within it.

tasks.running("objects within quotas", lambda stop: fetch_absent(client, resource, Form, store, stop))
"""

from __future__ import annotations

import logging
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import msgspec

from adapter.foundation.cluster.stores.oldest_objects import Key, in_turns
from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.time.rate_limit import RateLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from threading import Event

    from adapter.foundation.sources.kubernetes.client import KubernetesClient

F_contra = TypeVar("F_contra", contravariant=True)
F = TypeVar("F")

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.5
_RETRY_RATIO: Final = 20.0
_PER_SECOND: Final = 10.0
_BURST: Final = 50
"""Limit on the requests at once: deleting 20,000 objects of a namespace one by one brings as many others within its
quota."""


class _ShortList(msgspec.Struct):
    """A list whose objects are decoded one by one."""

    items: list[msgspec.Raw]


class StoreWithQuota(Protocol[F_contra]):
    """A store that keeps the oldest objects of each namespace whole (`OldestObjects`)."""

    def absent(self) -> Collection[Key]:
        """Return the objects within the limit whose content is not known."""

    def restore(self, item: F_contra) -> None:
        """Add the content of an absent object, unless the object was deleted or its content arrived meanwhile."""


def list_one(client: KubernetesClient, collection: Callable[[str], str], namespace: str, name: str) -> bytes:
    """Return a list with only the object of this name. This requires the right to list, which every watch requires.

    Raises KubernetesError.
    """
    return client.get(collection(namespace), {"fieldSelector": f"metadata.name={name}"})


def fetch_absent(
    listing: Callable[[str, str], bytes],
    form: type[F],
    store: StoreWithQuota[F],
    stop: Event,
    limit: RateLimit | None = None,
    wait_seconds: float = _LOOK_SECONDS,
) -> None:
    """Fetch absent objects until `stop` is set, taking the namespaces in turn; those that failed before come last.

    `listing` returns a list with one object or none (`list_one`), and raises KubernetesError. After a failure, the wait
    is twenty times as long.
    """
    lists, decoder = decoder_of(_ShortList), decoder_of(form)
    limit = limit or RateLimit(_PER_SECOND, _BURST)
    wait = wait_seconds
    failed: set[Key] = set()
    while not stop.wait(wait):
        wait = wait_seconds
        absent = store.absent()
        failed.intersection_update(absent)
        for key in sorted(in_turns(sorted(absent), itemgetter(0)), key=failed.__contains__):
            if stop.is_set() or not limit.take(0.0):
                break
            try:
                # If the object is gone, the watch reports its deletion.
                for item in lists.decode(listing(*key)).items[:1]:
                    store.restore(decoder.decode(item))
            except KubernetesError as error:
                _note_failure(failed, key, "fetched", error)
                wait = _RETRY_RATIO * wait_seconds
                break
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                # A problem with one object must not delay the others.
                _note_failure(failed, key, "read", error)
                wait = _RETRY_RATIO * wait_seconds


def _note_failure(failed: set[Key], key: Key, what: str, error: Exception) -> None:
    """Note that an object is still absent, and log it unless it failed before."""
    if key not in failed:
        _log.warning("%s/%s cannot be %s, will retry: %s", *key, what, error)
    failed.add(key)
