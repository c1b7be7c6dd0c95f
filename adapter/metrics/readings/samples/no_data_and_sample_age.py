"""Applies a rule's policy to a reading: which values are too old, and which value is served for no data.

A value is served for no data only if Prometheus answered, had nothing, and has been up for long enough to know. A value
that is missing for any other reason (an answer that failed or is too old, samples that are too old, infinite or
ambiguous) stays an error: a made-up number must not hide it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from adapter.foundation.objects.quantities import milli_of
from adapter.foundation.promql.reach import LOOK_BACK_SECONDS
from adapter.foundation.reports.counts import agreeing, count_of
from adapter.foundation.time.timestamps import is_moment, rfc3339
from adapter.metrics.readings.answers import ByName, BySelector, ExternalAnswer, ObjectsAnswer
from adapter.metrics.readings.errors import (
    ForeignNamespaceError,
    NoDataUncertainError,
    NoSampleError,
    SampleTooOldError,
)
from adapter.metrics.readings.prometheus_uptime import may_stand_in
from adapter.metrics.readings.samples.object_reading import Dropped, Fault, ObjectReading
from adapter.metrics.rulebook.model import ForeignNamespaces, Metric, Policy
from adapter.metrics.rulebook.plans.reach import ranges_of
from adapter.metrics.rulebook.requests import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.readings.readings_settings import ReadingSettings
    from adapter.metrics.readings.samples.external_reading import ExternalReading
    from adapter.metrics.rulebook.model import Rule

STANDS_IN = "Prometheus has no data: the rule's onNoData value is served instead"
BELOW_ZERO = (
    "the sum is below zero, which an HPA with a target of type AverageValue takes for an overflow: it scales to "
    "maxReplicas; if that is not meant, write clamp_min(…, 0) into the rule's metricsQuery"
)
"""The HPA controller (`GetExternalPerPodMetricReplicas`) adds the series up, and mistakes a sum below zero for a huge
one. Targets of type Value are not affected, so the value is served."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A request to a reading."""

    policy: Policy
    age: float
    """Age of the reading in seconds."""
    look_back_seconds: float
    """How long Prometheus uses the last sample of a series as its value."""
    ranges_seconds: float = 0.0
    """The longest range that the rule's query looks over."""
    assumes_labels: bool = False
    """Whether the series may have other labels of the rule than those that the query names."""
    allow_foreign: bool = False
    """Whether samples that carry another namespace are accepted."""


def asking_of(metric: Metric, age: float, settings: ReadingSettings) -> Asking:
    """Return the request for a reading of a metric; `age` is that of the reading, in seconds."""
    rule, allow = metric.rule, allows_foreign(metric, settings)
    return Asking(
        rule.policy, age, settings.look_back_seconds, rule.ranges_seconds, metric.assumes_labels, allow_foreign=allow
    )


def allows_foreign(metric: Metric, settings: ReadingSettings) -> bool:
    """Return whether samples that carry another namespace than the request's are accepted."""
    said = metric.rule.policy.foreign_namespaces
    # An external rule that does not use the request gives everybody what its author wrote.
    is_fixed = metric.resource is None and not metric.rule.metrics_query.uses_request
    return said is ForeignNamespaces.ALLOW or (said is None and (is_fixed or settings.allow_foreign_namespaces))


def unknown_age_warnings(rules: Iterable[Rule], settings: ReadingSettings) -> Iterator[str]:
    """Yield a warning for each rule whose `maxSampleAge` does not see all samples, since the look-back is short.

    A rule file is read without knowing the look-back, so it is judged by the default one.
    """
    look_back = settings.look_back_seconds
    for rule in rules if look_back < LOOK_BACK_SECONDS else ():
        if rule.times_query is not None and (ranges := ranges_of(rule.metrics_query)) > look_back:
            yield (
                f"{rule.place}: its query looks over {ranges:g} s, but Prometheus returns the times of samples for "
                f"{look_back:g} s (--prometheus-look-back): between the two, `maxSampleAge` does not see that a series "
                "is silent; shorten the range"
            )


def objects_answer(
    asking: Asking,
    reading: ObjectReading,
    namespace: str | None,
    which: ByName | BySelector,
    names: Collection[str],
    exists: Callable[[str], bool],
) -> ObjectsAnswer:
    """Return the values of the objects with these names. Raises ReadingError.

    `exists` returns whether there is an object of a name, and may raise ReadingError; it is called for a request by
    name that would get the value for no data.
    """
    policy, age, allow = asking.policy, asking.age, asking.allow_foreign
    evaluated_at, window = reading.evaluated.wall, policy.window_seconds
    stand_in, limit = policy.no_data_value, policy.max_sample_age_seconds
    if (stand_in is not None or limit is not None) and reading.has_no_data(namespace, names, allow_foreign=allow):
        _refuse_aged(reading, namespace, names, age, limit)
        if stand_in is not None:
            if isinstance(which, ByName) and not exists(which.name):
                raise NoSampleError(f"there is no object {which.name!r}, so the onNoData value is not served for it")
            _refuse_assumed(asking)
            _refuse_unmade(asking, reading, namespace, names)
            _refuse_unsteady(asking, reading.steady_seconds)
            return ObjectsAnswer(tuple((name, stand_in) for name in names), evaluated_at, (STANDS_IN,), window)
    lacking: tuple[str, ...] = ()
    if isinstance(which, ByName):
        found = reading.one(namespace, which.name, allow_foreign=allow)
    else:
        found = reading.of(namespace, names, allow_foreign=allow)
        lacking = _left_out(names, dict(reading.faults_of(namespace, names, allow_foreign=allow)))
    fresh, warnings = _fresh(policy, reading, namespace, found, age)
    return ObjectsAnswer(fresh, evaluated_at, (*warnings, *lacking), window)


def external_answer(
    asking: Asking,
    reading: ExternalReading,
    namespace: str | None,
    selector: Selector,
    count: Callable[[Counter[Dropped]], None],
) -> ExternalAnswer:
    """Return a requester's rows; `count` is called with dropped ones, once for each requester. Raises ReadingError."""
    policy, age = asking.policy, asking.age
    evaluated_at, window = reading.evaluated.wall, policy.window_seconds
    foreign = "" if asking.allow_foreign else reading.foreign(namespace, selector, count)
    if foreign:
        raise ForeignNamespaceError(foreign)
    rows, limit = reading.answer(namespace, selector, count), policy.max_sample_age_seconds
    if limit is not None:
        hold = policy.hold_silent_seconds
        sample_age = reading.sample_age(namespace, selector, hold)
        # A sum without a series is too low, whatever age the rule allows.
        is_gone = reading.lacks_silent(namespace, selector, hold, asking.look_back_seconds)
        # Without rows there may be no samples either; but if there are, they must not be too old.
        if is_gone or (_is_too_old(sample_age, age, limit) and (rows or sample_age is not None)):
            if reading.is_first_aged(namespace, selector):
                count(Counter({Dropped.STALE: len(rows)}))
            raise SampleTooOldError(
                _gone_reason(hold) if is_gone else _too_old_reason("the metric", evaluated_at, sample_age, limit)
            )
    if rows or policy.no_data_value is None or not reading.has_no_data(namespace, selector):
        return ExternalAnswer(rows, evaluated_at, (BELOW_ZERO,) if _falls_below_zero(rows) else (), window)
    _refuse_assumed(asking)
    if reading.sample_age(namespace, selector) is not None and not reading.rows(namespace, selector):
        raise NoDataUncertainError(_unmade("the metric"))
    _refuse_unsteady(asking, reading.steady_seconds)
    return ExternalAnswer((Row({}, policy.no_data_value),), evaluated_at, (STANDS_IN,), window)


def _falls_below_zero(rows: Sequence[Row]) -> bool:
    """Return whether the running sum of the rows falls below zero at any point."""
    if all(row.value >= 0 for row in rows):
        return False
    return any(total < 0 for total in accumulate(milli_of(row.value) for row in rows))


def _refuse_aged(
    reading: ObjectReading, namespace: str | None, names: Iterable[str], age: float, limit: float | None
) -> None:
    """Raise SampleTooOldError if one of these objects, which have no value, has samples that are too old."""
    for name in names if limit is not None else ():
        sample_age = reading.sample_age(namespace, name)
        if limit is not None and sample_age is not None and _is_too_old(sample_age, age, limit):
            raise SampleTooOldError(_too_old_reason(repr(name), reading.evaluated.wall, sample_age, limit))


def _refuse_assumed(asking: Asking) -> None:
    """Raise NoDataUncertainError if there may be data under other labels of the rule."""
    if asking.assumes_labels:
        raise NoDataUncertainError(
            "Prometheus has no data under the first of several labels, and which of the rule's labels its series have "
            "is not known before they have been looked up"
        )


def _refuse_unmade(asking: Asking, reading: ObjectReading, namespace: str | None, names: Iterable[str]) -> None:
    """Raise NoDataUncertainError if an object has no value although the times of its samples are known."""
    for name in names:
        is_nan = reading.is_nan(namespace, name, allow_foreign=asking.allow_foreign)
        if reading.sample_age(namespace, name) is not None and not is_nan:
            raise NoDataUncertainError(_unmade(repr(name)))


def _refuse_unsteady(asking: Asking, steady: float) -> None:
    """Raise NoDataUncertainError if Prometheus had not been up for long enough to know that there is no data."""
    needed = asking.look_back_seconds + asking.ranges_seconds
    if not may_stand_in(steady, asking.look_back_seconds, asking.ranges_seconds):
        raise NoDataUncertainError(unsteady(steady, needed))


def unsteady(steady: float, needed: float) -> str:
    """Return why no value may be served for no data yet; both times are in seconds."""
    if math.isinf(needed):
        return (
            "Prometheus has no data, but how far back the query looks is not known, so scrapes of that time may be "
            "missing: write its ranges and offsets as plain durations, as in [90m], or remove onNoData"
        )
    return (
        f"Prometheus has no data, but has been up, or back, for only {steady:.0f} s: whether there is none is not "
        f"known before {needed:g} s, which the query looks back over"
    )


def _unmade(who: str) -> str:
    return (
        f"{who} has no value: there are samples, but the rule's query makes no value of them (too few for its range, "
        "a filter, or a missing partner), so the onNoData value is not served instead"
    )


def _fresh(
    policy: Policy,
    reading: ObjectReading,
    namespace: str | None,
    found: tuple[tuple[str, float], ...],
    age: float,
) -> tuple[tuple[tuple[str, float], ...], tuple[str, ...]]:
    """Return the values whose samples are young enough, and a warning if some are not. Raises SampleTooOldError."""
    limit = policy.max_sample_age_seconds
    if limit is None:
        return found, ()
    ages = [reading.sample_age(namespace, name) for name, _ in found]
    fresh = tuple(pair for pair, own in zip(found, ages, strict=True) if not _is_too_old(own, age, limit))
    if len(fresh) == len(found):
        return found, ()
    if not fresh:
        raise SampleTooOldError(_too_old_reason(repr(found[0][0]), reading.evaluated.wall, ages[0], limit))
    dropped = len(found) - len(fresh)
    are = agreeing(dropped, "is", "are")
    return fresh, (f"{dropped} of {len(found)} objects {are} left out: the samples are older than {limit:g} s",)


def _is_too_old(sample_age: float | None, age: float, limit: float) -> bool:
    return sample_age is None or sample_age + age > limit


def _too_old_reason(who: str, evaluated_at: float, sample_age: float | None, limit: float) -> str:
    """Return why there is no value, with the time of the last samples: an age would change with each sync of an HPA."""
    allowed = f"the rule allows {limit:g} s (maxSampleAge): check whether its targets are up"
    if sample_age is None or not is_moment(evaluated_at - sample_age):
        return f"{who} has no value: Prometheus has no current sample of its series, and {allowed}"
    last = rfc3339(round(evaluated_at - sample_age, 3))
    return f"{who} has no value: its series' last samples are from {last}, and {allowed}"


def _gone_reason(hold_seconds: float) -> str:
    held = f"it counts for {hold_seconds:g} s after its last sample (holdSilent)"
    return f"the metric has no value: Prometheus no longer has a series that fell silent, and {held}: check its target"


def _left_out(names: Collection[str], faults: Mapping[str, Fault]) -> tuple[str, ...]:
    """Return the warning about a list that leaves out objects whose samples cannot be assigned to them.

    `names` are the objects that are requested. Objects whose value is not a number are left out without a warning, as
    in every answer.
    """
    lacking = [name for name in names if name in faults and faults[name].error is not None]
    if not lacking:
        return ()
    what = agreeing(len(lacking), "has no value and is left out", "have no value and are left out")
    which = f"{len(lacking)} of {count_of(len(names), 'object')} {what}, such as {lacking[0]!r}"
    return (f"{which}: {faults[lacking[0]].reason}",)
