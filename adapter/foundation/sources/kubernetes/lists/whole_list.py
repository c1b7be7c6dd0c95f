"""Lists a collection once, for programs that may list it but may not watch it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from adapter.foundation.sources.kubernetes.errors import UnexpectedResponseError
from adapter.foundation.sources.kubernetes.lists.items import ItemsError, JsonList
from adapter.foundation.sources.kubernetes.lists.list_checks import refuse_other_kind
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.lists.list_watch import ListWatch

T = TypeVar("T")

_PAGE_SIZE: Final = 200
"""Objects in a page. A Node has 10 to 20 KiB, most of it the list of its images."""
_MOST_PAGES: Final = 10_000


def whole_list(client: KubernetesClient, which: ListWatch, form: type[T]) -> Iterator[T]:
    """Yield all objects of a collection at one moment, decoded as `form`, page by page.

    Raises KubernetesError, also for an object that cannot be decoded, since the list would be incomplete without it.
    Objects that were yielded before an error must not be used.
    """
    query = which.list_query(_PAGE_SIZE)
    for _ in range(_MOST_PAGES):
        page = JsonList(client.get(which.path, query, which.accept.of_list), form)
        try:
            for items in page.batches(UNPACED):
                yield from items
        except ItemsError as error:
            raise UnexpectedResponseError(f"GET {which.path}: not a list of objects: {error}") from error
        refuse_other_kind(which.path, which.resource, page.head, metadata_alone=which.metadata_alone)
        token = page.head.metadata.next_page
        if not token:
            return
        query = {**query, "continue": token}
    raise UnexpectedResponseError(f"GET {which.path}: the list does not end: it has more than {_MOST_PAGES} pages")
