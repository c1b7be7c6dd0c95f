"""The store of watched objects of the kind Recommendation, with as many from each namespace as its quota permits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.cluster.stores.oldest_objects import ObjectIdentity
from adapter.foundation.cluster.stores.quota_store import KeptObject, QuotaStore
from adapter.foundation.cluster.watch.whole_objects.watching import AnyObjectForm, whole_object
from recommender.configuration.objects.object_reading import RecommendationObject, object_of
from recommender.configuration.objects.object_settings import KIND
from recommender.running.objects.object_status import says_over_quota

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.objects.resources import Resource

_log = logging.getLogger(__name__)

RecommendationStore: TypeAlias = QuotaStore[AnyObjectForm, RecommendationObject]


def recommendation_store(
    resource: Callable[[], Resource], most: int, changed: Callable[[], None]
) -> RecommendationStore:
    """Return an empty store that keeps up to `most` objects of each namespace; those being deleted count as gone.

    `resource` returns the version of the received objects; `changed` is called whenever a kept object has changed.
    """

    def convert(item: AnyObjectForm, _before: RecommendationObject | None) -> KeptObject[RecommendationObject] | None:
        found = _object_from_form(resource(), item)
        if found is None:
            return None
        identity = ObjectIdentity(found.namespace, found.name, found.uid, found.generation, found.created)
        return KeptObject(identity, found, says_over_quota(found.status, found.generation))

    return QuotaStore(most, convert, lambda _changes: changed())


def _object_from_form(resource: Resource, item: AnyObjectForm) -> RecommendationObject | None:
    """Return the object; None if it takes no effect, or cannot be read."""
    try:
        return object_of(whole_object(resource, item))
    except (KeyError, TypeError, RecursionError) as error:
        _log.warning(
            "%s %s/%s cannot be read, and does not count: %s", KIND, item.metadata.namespace, item.metadata.name, error
        )
        return None
