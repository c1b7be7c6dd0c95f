"""The facts of a provider's group that rarely change, and are rarely requested: template, options and price."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from recommender.kinds.cluster_size.node_groups.external_grpc.channel import CallError
from recommender.kinds.cluster_size.node_groups.external_grpc.messages import (
    USUAL_OPTIONS,
    options_message,
    options_of,
    template_of,
)
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginError
from recommender.kinds.cluster_size.wire.external_grpc_pb2 import (
    ExternalGrpcNode,
    GroupRequest,
    MetaTime,
    NodeGroupAutoscalingOptionsRequest,
    NodeGroupAutoscalingOptionsResponse,
    NodeGroupTemplateNodeInfoResponse,
    PricingNodePriceRequest,
    PricingNodePriceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from recommender.kinds.cluster_size.model.groups import GroupOptions
    from recommender.kinds.cluster_size.model.size_settings import ExternalGrpcGroups
    from recommender.kinds.cluster_size.node_groups.external_grpc.channel import (
        ProviderChannel,
        WireAnswer,
        WireMessage,
    )

    A = TypeVar("A", bound=WireAnswer)

_KEPT_SECONDS: Final = 300.0
_RETRY_SECONDS: Final = 15.0
_TELLING_SECONDS: Final = 2.0
"""A failed call says something about the group only if it had this much time, or the whole timeout of a call."""
_HOUR_SECONDS: Final = 3600


@dataclass(frozen=True, slots=True)
class SlowFact:
    """The facts of one group that seldom change."""

    until: float
    template: Mapping[str, object] | None = None
    options: GroupOptions | None = None
    price: float | None = None
    problem: str = ""
    """The problem of the options or the template; if there is one, no decision may use them."""


class SlowFacts:
    """The slow facts of all groups, each kept for a while. Not thread-safe."""

    def __init__(self, settings: ExternalGrpcGroups, channel: ProviderChannel, clock: Callable[[], float]) -> None:
        """Ask for nothing yet."""
        self._settings = settings
        self._defaults = settings.defaults or USUAL_OPTIONS
        self._channel = channel
        self._clock = clock
        self._known: dict[str, SlowFact] = {}
        self._failed: set[str] = set()

    def retain(self, groups: Container[str]) -> None:
        """Forget all other groups."""
        self._known = {name: fact for name, fact in self._known.items() if name in groups}
        self._failed &= self._known.keys()

    def has_failed(self, group: str) -> bool:
        """Return whether the last attempt to read the facts of a group failed although there was enough time."""
        return group in self._failed

    def of(self, group: str, seconds: float) -> SlowFact:
        """Return the facts of a group. Calls may take `seconds` each; if one fails, the last known facts stay."""
        known, now = self._known.get(group), self._clock()
        if known is not None and now < known.until:
            return known
        try:
            found = self._ask_group(group, seconds, now, None if known is None else known.price)
            self._failed.discard(group)
            if known is not None and not found.problem:
                found = _with_last_facts(found, known, now)
        except CallError as error:
            if seconds >= min(_TELLING_SECONDS, self._settings.timeout_seconds):
                self._failed.add(group)
            # If nothing is known yet, a decision without the options could remove nodes too early.
            last = known or SlowFact(0.0, problem=str(error))
            found = SlowFact(now + _RETRY_SECONDS, last.template, last.options, last.price, last.problem)
        except PluginError as error:
            found = SlowFact(now + _RETRY_SECONDS, problem=str(error))
        self._known[group] = found
        return found

    def _ask_group(self, group: str, seconds: float, now: float, last_price: float | None) -> SlowFact:
        answer = self._optional(
            "NodeGroupTemplateNodeInfo", GroupRequest(id=group), NodeGroupTemplateNodeInfoResponse, seconds
        )
        template = None if answer is None else template_of(answer)
        request = NodeGroupAutoscalingOptionsRequest(id=group, defaults=options_message(self._defaults))
        stated = self._optional("NodeGroupGetOptions", request, NodeGroupAutoscalingOptionsResponse, seconds)
        options = None
        if stated is not None and stated.HasField("nodeGroupAutoscalingOptions"):
            options = options_of(stated.nodeGroupAutoscalingOptions, self._defaults)
        return SlowFact(now + _KEPT_SECONDS, template, options, self._price(group, template, seconds, last_price))

    def _price(
        self, group: str, template: Mapping[str, object] | None, seconds: float, last: float | None
    ) -> float | None:
        """Return the price of a node for an hour; None if neither the configuration nor the provider states one.

        If the call fails, the last price stays: without one, sums of prices and comparisons would lack the group.
        """
        if group in self._settings.prices:
            return self._settings.prices[group]
        metadata = (template or {}).get("metadata")
        if not isinstance(metadata, dict):
            return None
        start = int(time.time())
        request = PricingNodePriceRequest(
            node=ExternalGrpcNode(name=metadata["name"], labels=metadata["labels"]),
            startTime=MetaTime(seconds=start),
            endTime=MetaTime(seconds=start + _HOUR_SECONDS),
            startTimestamp=Timestamp(seconds=start),
            endTimestamp=Timestamp(seconds=start + _HOUR_SECONDS),
        )
        try:
            found = self._optional("PricingNodePrice", request, PricingNodePriceResponse, seconds)
        except CallError:
            return last
        return None if found is None else found.price

    def _optional(self, method: str, request: WireMessage, answer: type[A], seconds: float) -> A | None:
        """Return the answer to a call that a provider need not have; None if it does not have it. Raises CallError."""
        try:
            return self._channel.ask(method, request, answer, seconds)
        except CallError as error:
            if error.is_unimplemented:
                return None
            raise


def _with_last_facts(found: SlowFact, known: SlowFact, now: float) -> SlowFact:
    """Return the facts; what is not stated any more may be stated again, and until then the last facts remain valid.

    A provider with the published wrapper states the same if it has no template and if its cloud does not answer, and
    without a template, a group without nodes could not grow.
    """
    if found.template is None and known.template is not None:
        found = replace(found, template=known.template, price=known.price, until=now + _RETRY_SECONDS)
    return found if found.options is not None else replace(found, options=known.options)
