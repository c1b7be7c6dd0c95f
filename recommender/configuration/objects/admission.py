"""Determines which Recommendation objects take effect: the file takes precedence, and namespaces have quotas. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from recommender.configuration.configured_targets import TargetIdentity, identity_of
from recommender.configuration.needs import needs_of_one
from recommender.configuration.objects.object_reading import ObjectRefusal, RecommendationObject
from recommender.kinds.kind import Recommendation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from recommender.configuration.objects.object_settings import RecommendationObjectSettings
    from recommender.configuration.recommender_configuration import Configuration

QUOTA_EXCEEDED: Final = "QuotaExceeded"
_READ_RATIO: Final = 2
_MAX_OBJECTS: Final = "recommendationObjects.maxPerNamespace"
_MAX_TARGETS: Final = "recommendationObjects.maxTargetsPerNamespace"


@dataclass(frozen=True, slots=True)
class ReadObject:
    """An object with the recommendation that its spec describes, or with the reason why it is refused."""

    about: RecommendationObject
    read: Recommendation | ObjectRefusal


@dataclass(frozen=True, slots=True)
class Admission:
    """The configuration with the objects that take effect, and the reasons why the others are refused."""

    configuration: Configuration
    objects: Mapping[str, RecommendationObject] = field(default_factory=dict)
    """All objects, refused ones included, by `NAMESPACE/NAME`."""
    refusals: Mapping[str, ObjectRefusal] = field(default_factory=dict)


@dataclass(slots=True)
class _Quota:
    """The part of the quotas of a namespace that its objects have used so far."""

    objects: int = 0
    targets: int = 0

    def add(self, read: Recommendation) -> None:
        """Count an object."""
        self.objects += 1
        self.targets += _targets(read)


def configuration_with_objects(file: Configuration, objects: Collection[ReadObject]) -> Admission:
    """Return the configuration of the file together with the objects that take effect.

    None of them takes effect if the file does not enable objects. Older objects take precedence over newer ones.
    """
    if not file.objects.enabled:
        return Admission(file)
    owners = {identity_of(target): _in_file(each) for each in file.recommendations for target in each.policy.targets}
    quotas: dict[str, _Quota] = defaultdict(_Quota)
    counting: list[Recommendation] = []
    refusals: dict[str, ObjectRefusal] = {}
    for each in sorted(objects, key=_age):
        key, read = each.about.key, each.read
        if isinstance(read, Recommendation):
            read = _taken_target(read, owners) or _over_quota(read, quotas[each.about.namespace], file.objects) or read
        if isinstance(read, ObjectRefusal):
            refusals[key] = read
            continue
        quotas[each.about.namespace].add(read)
        owners |= {identity_of(target): _taken_by_older(key) for target in read.policy.targets}
        counting.append(read)
    known = {each.about.key: each.about for each in objects}
    recommendations = (*file.recommendations, *counting)
    configuration = replace(file, recommendations=recommendations, object_names=frozenset(known))
    return Admission(configuration, known, refusals)


def _age(each: ReadObject) -> tuple[str, str, str]:
    """Return a key that sorts objects by age, the oldest first; RFC 3339 times in UTC can be sorted as text."""
    return each.about.created, each.about.namespace, each.about.name


def _in_file(entry: Recommendation) -> ObjectRefusal:
    return ObjectRefusal(
        "TargetInFile", f"a target of recommendation {entry.policy.name!r} of the administrator's file"
    )


def _taken_by_older(key: str) -> ObjectRefusal:
    return ObjectRefusal("TargetTaken", f"a target of the older object {key}")


def _taken_target(read: Recommendation, owners: Mapping[TargetIdentity, ObjectRefusal]) -> ObjectRefusal | None:
    for target in read.policy.targets:
        owner = owners.get(identity_of(target))
        if owner is not None:
            return ObjectRefusal(owner.reason, f"{target} is already {owner.message}")
    return None


def _over_quota(read: Recommendation, used: _Quota, settings: RecommendationObjectSettings) -> ObjectRefusal | None:
    namespace = read.policy.namespace
    if used.objects >= settings.max_per_namespace:
        message = f"namespace {namespace} has {used.objects} older objects, as many as {_MAX_OBJECTS} allows"
        return ObjectRefusal(QUOTA_EXCEEDED, f"{message}: delete one, or ask the administrator for more")
    most, wanted = settings.max_targets_per_namespace, _targets(read)
    if used.targets + wanted > most:
        message = f"with its {wanted} targets, namespace {namespace} has more than the {most} of {_MAX_TARGETS}"
        return ObjectRefusal(QUOTA_EXCEEDED, f"{message}: lower forEach.max, or list fewer targets")
    return None


def most_read(settings: RecommendationObjectSettings) -> int:
    """Return the maximum number of objects of a namespace that are read, as even refused ones cost work."""
    return _READ_RATIO * settings.max_per_namespace


def unread(namespace: str, settings: RecommendationObjectSettings) -> ObjectRefusal:
    """Return the refusal of an object that is not read because `most_read` objects of its namespace are older."""
    message = (
        f"namespace {namespace} has at least {most_read(settings)} older objects, and {_MAX_OBJECTS} lets "
        f"{settings.max_per_namespace} count, so this one is not read"
    )
    return ObjectRefusal(QUOTA_EXCEEDED, f"{message}: delete some, or ask the administrator for more")


def _targets(read: Recommendation) -> int:
    """Return how many targets a recommendation counts for in the quota.

    This is `forEach.max` with `forEach`, and otherwise the number of listed targets, but at least 1.
    """
    each = needs_of_one(read).for_each
    return max(1, len(read.policy.targets)) if each is None else each.max_targets
