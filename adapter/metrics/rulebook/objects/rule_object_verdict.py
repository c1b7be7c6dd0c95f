"""The verdict on a MetricRule object: whether it serves metrics, and if not, why (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.counts import first_names
from adapter.metrics.rulebook.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.metrics.rulebook.objects.rule_object import RuleObject

STATES: Final = ("ready", "refused", "waiting")
"""The states of objects in the adapter's own metrics."""
_MOST_SHOWN = 3
# The reason is left out: it may contain numbers that differ between replicas, which would overwrite each other's.
_LOOK_UP_FAILED = (
    "its series could not be looked up, or only in part; they are looked up again, and `tidewatch-adapter explain "
    "--server` says why"
)
"""Limit on the names that a message lists."""


class Reason(StrEnum):
    """The reason of a condition."""

    ACCEPTED = "Accepted"
    SERVED = "Served"
    LOOK_UP_PENDING = "LookUpPending"
    LOOK_UP_FAILED = "LookUpFailed"
    NO_SERIES = "NoSeries"
    INVALID_RULE = "InvalidRule"
    NAME_TAKEN = "NameTaken"
    TOO_MANY_RULES = "TooManyRules"
    TOO_MANY_SERIES = "TooManySeries"
    TOO_MANY_METRICS = "TooManyMetrics"


class Ready(StrEnum):
    """The status of the condition Ready."""

    YES = "True"
    NO = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class RuleRefusal:
    """Why an object, or a part of its metrics, is not served."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class TakenName:
    """A metric that an object would serve, but another rule serves."""

    name: str
    owner: str
    """Which rule serves the name: `the rule files`, or `MetricRule shop/web`."""


@dataclass(frozen=True, slots=True)
class KnownObject:
    """All that a process knows of an object."""

    found: RuleObject
    refusal: RuleRefusal | None = None
    """Why a quota keeps it from being served."""
    metrics: tuple[str, ...] = ()
    """Names of the metrics that it serves, such as `pods/http_rps`."""
    taken: tuple[TakenName, ...] = ()
    series: int | None = None
    """Number of the series that it selects; None before the first look-up."""
    failed: bool = False
    """Whether its last look-up failed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The content of an object's status."""

    ready: Ready
    reason: Reason
    message: str
    refusal: RuleRefusal | None
    """Why the object, or a part of it, is refused; None if nothing is."""
    metrics: tuple[str, ...]
    series: int | None

    @property
    def state(self) -> str:
        """One of `STATES`; an object is ready if any part of it is served."""
        if self.ready is Ready.YES:
            return "ready"
        return "waiting" if self.refusal is None else "refused"


def too_many_rules(most: int) -> RuleRefusal:
    """Return why an object is not served if its namespace already has as many older ones as it may have."""
    message = f"a namespace may have at most {most} MetricRules, and it has that many older ones: delete some of them"
    return RuleRefusal(Reason.TOO_MANY_RULES, message)


def too_many_rules_verdict(most: int) -> Verdict:
    """Return the verdict on an object that is not read because its namespace has too many."""
    refusal = too_many_rules(most)
    return Verdict(Ready.NO, refusal.reason, refusal.message, refusal, (), None)


def verdict_of(known: KnownObject) -> Verdict:
    """Return what to tell the owner of an object."""
    refusal = _invalid(known.found) or known.refusal or _taken_names_refusal(known.taken, served=bool(known.metrics))
    if refusal is not None and not known.metrics:
        return Verdict(Ready.NO, refusal.reason, refusal.message, refusal, (), known.series)
    ready, reason, message = _readiness(known)
    return Verdict(ready, reason, message, refusal, known.metrics, known.series)


def _readiness(known: KnownObject) -> tuple[Ready, Reason, str]:
    if known.series is None and known.failed:
        return Ready.UNKNOWN, Reason.LOOK_UP_FAILED, _LOOK_UP_FAILED
    if known.series is None:
        return Ready.UNKNOWN, Reason.LOOK_UP_PENDING, "its series have not been looked up yet"
    if not known.series:
        return Ready.NO, Reason.NO_SERIES, "Prometheus has no series in this namespace that `seriesQuery` selects"
    if not known.metrics:
        return Ready.NO, Reason.NO_SERIES, "no series that it selects has the labels of an object in a namespace"
    return Ready.YES, Reason.SERVED, f"serves {first_names(known.metrics, _MOST_SHOWN)}{_warning_text(known.found)}"


def _invalid(found: RuleObject) -> RuleRefusal | None:
    """Return the refusal that states the first error of `check`, and how many more there are; None without errors."""
    errors = [finding for finding in found.findings if finding.severity is Severity.ERROR]
    if not errors:
        return None
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return RuleRefusal(Reason.INVALID_RULE, f"{errors[0].message}: {errors[0].fix}{more}")


def _taken_names_refusal(taken: Sequence[TakenName], *, served: bool) -> RuleRefusal | None:
    if not taken:
        return None
    names = first_names((each.name for each in taken), _MOST_SHOWN)
    others = "; its other metrics are served" if served else ""
    message = f"in this namespace, {names} comes from {taken[0].owner}{others}: use another name"
    return RuleRefusal(Reason.NAME_TAKEN, message)


def _warning_text(found: RuleObject) -> str:
    """Return the first warning of `check`."""
    warnings = [finding for finding in found.findings if finding.severity is Severity.WARNING]
    return f"; {warnings[0].message}: {warnings[0].fix}" if warnings else ""
