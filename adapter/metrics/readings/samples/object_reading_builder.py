"""Makes the reading of a custom metric from the samples of an answer, slice by slice.

Most samples are assigned directly. If there are several for one object, none of them is its value, and the answer is
searched a second time for the labels in which they differ: keeping the labels of all samples, just in case, would cost
a hundred megabytes for a case that should never occur.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from adapter.foundation.objects.quantities import fits_milli_units
from adapter.foundation.time.pace import UNPACED, Pace
from adapter.metrics.readings.errors import NoSampleError
from adapter.metrics.readings.samples.assignment import NAMELESS, Assignment
from adapter.metrics.readings.samples.conflicting_labels import Rivals
from adapter.metrics.readings.samples.foreign_samples import MOST_FOREIGN_OBJECTS, ForeignSamples
from adapter.metrics.readings.samples.object_reading import ROOT, Dropped, Fault, ObjectReading, container_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapter.foundation.sources.prometheus.answers.decoding import Sample
    from adapter.metrics.readings.samples.sample_times import SampleTimes
    from adapter.metrics.readings.samples.shared_names import SharedNames


HISTOGRAMS = "native histograms have no single value: use histogram_quantile() or the like"
"""Why a native histogram is not the value of any object."""
BEYOND_MILLI_UNITS = "autoscalers compute with thousandths in 64 bits, which end at 9.2e15"
"""Why a sample has no value although it is a finite number."""

_NO_VALUES = {
    Dropped.NAN: Fault("its value is NaN (not a number)", is_nan=True),
    Dropped.INF: Fault("its value is infinite"),
    Dropped.NEGATIVE: Fault("its value is negative"),
    Dropped.HISTOGRAM: Fault(HISTOGRAMS, error=NoSampleError),
    Dropped.TOO_LARGE: Fault(
        f"its value is too large: {BEYOND_MILLI_UNITS}; divide it in the rule's metricsQuery", error=NoSampleError
    ),
}


MOST_CONTAINERS = 1000
"""Limit on the containers of one pod. No real pod has as many: they come from a rule that mistakes another label for
the container's."""
_CROWDED = Fault(
    f"more than {MOST_CONTAINERS} values of the label for containers are in the samples of one pod: "
    "`containerLabel` must be the label that holds the names of containers"
)


def flaw_of_number(value: float) -> Dropped:
    """Return why a float that does not fit into milli-units is not a value."""
    if math.isfinite(value):
        return Dropped.TOO_LARGE
    return Dropped.NAN if math.isnan(value) else Dropped.INF


OF_ANOTHER_TIME = "Prometheus returned samples of another time than that of the query"
"""Why there may be more data than was collected."""


class ObjectReadingBuilder:
    """Collects the samples of one answer. Not thread-safe."""

    def __init__(
        self,
        assignment: Assignment,
        names: SharedNames,
        times: SampleTimes,
        most_foreign: int | None = MOST_FOREIGN_OBJECTS,
    ) -> None:
        """Begin a reading whose samples are assigned by `assignment`; `times` judges the times of the samples.

        `most_foreign` limits the objects whose samples from other namespaces are listed one by one; None means no
        limit.
        """
        self.dropped: Counter[Dropped] = Counter()
        self._assignment = assignment
        self._names = names
        self._times = times
        self._values: dict[str, dict[str, float]] = {}
        self._faults: dict[str, dict[str, Fault]] = {}
        self._containers: dict[str, dict[str, list[str]]] = {}
        """The containers of a pod, by namespace and pod; none if there are too many."""
        self._whole: dict[str, set[str]] = {}
        """The pods with a sample that names no container, by namespace."""
        self._has_named = False
        self._crowded: tuple[str, str] | None = None
        self._rivals = Rivals()
        self._unplaced: tuple[str, Mapping[str, str]] | None = None
        """The label that a sample lacks, and the labels that it has."""
        self._foreign = ForeignSamples(assignment.namespace_label or "", most_foreign)
        self._has_strays = False

    def add(self, samples: Iterable[Sample], histograms: Iterable[Mapping[str, str]] = ()) -> None:
        """Add some samples; of native histograms, only the labels."""
        for sample in samples:
            place = self._place_at(sample)
            if isinstance(place, Dropped):
                self._drop(place, sample.labels, sample.value, self._flaw_of(sample.value))
            else:
                self._file(place, sample.value, self._flaw_of(sample.value))
        for labels in histograms:
            place = self._assignment.place_of(labels)
            if isinstance(place, Dropped):
                self._drop(place, labels, math.nan, Dropped.HISTOGRAM)
            else:
                self._file(place, math.nan, Dropped.HISTOGRAM)

    def end(self, pace: Pace = UNPACED) -> None:
        """Judge the samples that name no container, once all have been added; to be called once.

        Beside the samples of a pod's containers, such a sample is of the whole pod and would count twice. If there are
        no others, it is the pod's only container, which then has no name, as in prometheus-adapter.
        """
        whole = ((namespace, pod) for namespace, pods in self._whole.items() for pod in pods)
        for part in pace.timed(whole):
            for namespace, pod in part:
                known = self._containers.setdefault(namespace, {})
                if pod in known:
                    self._leave_out_whole(namespace, pod, crowded=not known[pod])
                else:
                    known[pod] = [NAMELESS]

    @property
    def has_rivals(self) -> bool:
        """Whether there are several samples for one object; then all must be passed to `compare`."""
        return bool(self._rivals)

    def compare(self, samples: Iterable[Sample], histograms: Iterable[Mapping[str, str]] = ()) -> None:
        """Determine, from some of the samples that were added before, in which labels those of one object differ."""
        for sample in samples:
            self._compare(sample.labels, self._place_at(sample))
        for labels in histograms:
            self._compare(labels, self._assignment.place_of(labels))

    def finish(self, pace: Pace = UNPACED, *, is_exact: bool = False) -> ObjectReading:
        """Return the reading; to be called once. Names of containers are joined in slices of the pace.

        `is_exact` means that the query asked for certain objects.
        """
        note, asked, own = self._note(), self._assignment.names, self._assignment.namespace or ROOT
        containers = None if self._assignment.container_label is None else self._joined_containers(pace)
        foreign = self._foreign.without(self._values.get(own, {}), self._faults.get(own, {}))
        return ObjectReading(
            self._times.evaluation(),
            self._values,
            self._faults,
            note,
            containers,
            asked,
            foreign=foreign,
            foreign_rest=self._foreign.rest,
            is_exact=is_exact,
            has_strays=self._has_strays,
            caution=self._caution(),
        )

    @property
    def ambiguous_example(self) -> str | None:
        """One object with too many samples and why it has no value, for the log; None if there is no such object."""
        for namespace, name in self._rivals:
            return f"{namespace}/{name} has no value: {self._faults[namespace][name].reason}"
        return None if self._crowded is None else f"{'/'.join(self._crowded)} has no value: {_CROWDED.reason}"

    def _compare(self, labels: Mapping[str, str], place: tuple[str, str] | Dropped) -> None:
        if not isinstance(place, Dropped) and place in self._rivals:
            self._faults[place[0]][place[1]] = self._rivals.compare(place, labels)

    def _place_at(self, sample: Sample) -> tuple[str, str] | Dropped:
        """Return namespace and object, or why the sample has none."""
        return self._assignment.place_of(sample.labels) if self._times.admits(sample.timestamp) else Dropped.STALE

    def _drop(self, reason: Dropped, labels: Mapping[str, str], value: float, flaw: Dropped | None) -> None:
        """Count a sample that is not the value of any object, and note what ignoring it would hide."""
        self.dropped[reason] += 1
        assignment = self._assignment
        name, namespace = labels.get(assignment.object_label), labels.get(assignment.namespace_label or "")
        if reason is Dropped.UNKNOWN_OBJECT and not name:
            self._unplaced = assignment.object_label, labels
        elif reason is Dropped.UNKNOWN_OBJECT and assignment.container_label is None:
            self._has_strays = True
        elif reason is Dropped.FOREIGN_NAMESPACE:
            if not name:
                self._unplaced = assignment.object_label, labels
            elif not namespace:
                self._unplaced = assignment.namespace_label or "", labels
            elif assignment.names is not None and name not in assignment.names:
                self._has_strays = True
            elif assignment.container_label is None:
                self._foreign.add(name, namespace, value, None if flaw is None else _NO_VALUES[flaw])

    def _file(self, place: tuple[str, str], value: float, flaw: Dropped | None) -> None:
        namespace, name = place
        values = self._values.get(namespace)
        if values is None:
            values = self._values[self._names.share(namespace)] = {}
        if name in values or name in self._faults.get(namespace, ()):
            if self._faults.get(namespace, {}).get(name) is _CROWDED:
                self.dropped[Dropped.UNKNOWN_OBJECT] += 1
            else:
                self._reject(place, values)
            return
        if self._assignment.container_label is not None and not self._enter_container(namespace, name, values):
            self.dropped[Dropped.UNKNOWN_OBJECT] += 1
            return
        if flaw is None:
            values[self._names.share(name)] = value
        else:
            self.dropped[flaw] += 1
            self._faults.setdefault(namespace, {})[name] = _NO_VALUES[flaw]

    def _enter_container(self, namespace: str, key: str, values: dict[str, float]) -> bool:
        """Note a container that was not seen before; return whether its pod may have one more."""
        pod, _, container = key.partition("/")
        if container == NAMELESS:
            self._whole.setdefault(namespace, set()).add(self._names.share(pod))
            return True
        pods = self._containers.get(namespace)
        if pods is None:
            pods = self._containers[self._names.share(namespace)] = {}
        self._has_named = True
        known = pods.get(pod)
        if known is None:
            pods[self._names.share(pod)] = [self._names.share(container)]
            return True
        if 0 < len(known) < MOST_CONTAINERS:
            known.append(self._names.share(container))
            return True
        for one in known:
            self.dropped[Dropped.UNKNOWN_OBJECT] += values.pop(container_key(pod, one), None) is not None
        known.clear()
        self._crowded = namespace, pod
        self._faults.setdefault(namespace, {})[container_key(pod, "")] = _CROWDED
        return False

    def _leave_out_whole(self, namespace: str, pod: str, *, crowded: bool) -> None:
        """Remove the value of a whole pod, or the reason for its absence; a crowded pod keeps that reason."""
        key = container_key(pod, NAMELESS)
        self.dropped[Dropped.UNKNOWN_OBJECT] += self._values[namespace].pop(key, None) is not None
        self._rivals.discard((namespace, key))
        if not crowded and namespace in self._faults:
            self._faults[namespace].pop(key, None)

    def _joined_containers(self, pace: Pace) -> Mapping[str, Mapping[str, str]]:
        """Return the names in the form that readings hold; the pods of a workload share one text."""
        texts: dict[str, str] = {}
        joined: dict[str, dict[str, str]] = {namespace: {} for namespace in self._containers}
        for part in pace.timed(self._joins()):
            for namespace, pod, text in part:
                joined[namespace][pod] = texts.setdefault(text, text)
        return joined

    def _joins(self) -> Iterator[tuple[str, str, str]]:
        """Yield namespace, pod, and its containers' names joined by slashes; yielded entries are freed."""
        for namespace, pods in self._containers.items():
            while pods:
                pod, containers = pods.popitem()
                yield namespace, pod, "/".join(containers)

    def _flaw_of(self, value: float) -> Dropped | None:
        if fits_milli_units(value):
            return Dropped.NEGATIVE if value < 0 and self._assignment.non_negative else None
        return flaw_of_number(value)

    def _reject(self, place: tuple[str, str], values: dict[str, float]) -> None:
        """Remove the value of an object for which there is a second sample."""
        namespace, name = place
        # The first sample counts as dropped as well, unless it was dropped because it is not a number.
        self.dropped[Dropped.DUPLICATE] += 1 + (values.pop(name, None) is not None)
        self._faults.setdefault(namespace, {})[name] = self._rivals.enter(place)

    def _note(self) -> str | None:
        if self._unplaced is None:
            return OF_ANOTHER_TIME if self.dropped[Dropped.STALE] else None
        lacking, labels = self._unplaced
        what = "object" if lacking == self._assignment.object_label else "namespace"
        came = ", ".join(sorted(labels)) or "no labels at all"
        return (
            f"a sample came without the label {lacking!r}, which names its {what}, "
            f"but with {came}: keep that label in the result of the rule's metricsQuery"
        )

    def _caution(self) -> str | None:
        """Return a caution if no sample names a container; it is normal that some samples are of whole pods."""
        label = self._assignment.container_label
        if label is None or self._has_named or not self._whole:
            return None
        return (
            f"no sample has the label {label!r}, which names its container, so each pod is one container without "
            "a name: keep that label in the result of the rule's containerQuery, or correct `containerLabel`"
        )
