"""States why a metric has no value, with one class for each kind of remedy.

    ReadingError
    ├── NoObjectsMatchError           the selector matches no object
    ├── NoSampleError                 the one object asked for has no sample
    ├── UnanswerableSelectorError     no query can be made of what was asked
    ├── TooMuchDemandError            too many requests or values are in demand already
    ├── ObjectsNotKnownError          the objects of this kind are not known yet
    ├── SourceUnreachableError        Prometheus cannot be reached, or what answers is not Prometheus
    ├── SourceSlowError               Prometheus did not answer in time
    │   └── FirstAnswerPendingError   it is the first request, and the answer is still on its way
    ├── AnswerTooOldError             the last good answer has grown too old
    ├── QueryRefusedByPrometheusError Prometheus refused the query
    ├── NoDataUncertainError          there is no value, but that need not mean that there is no data
    ├── SampleTooOldError             the samples behind the value are older than its rule allows
    ├── PartialAnswerError            there is an answer, but parts of it are missing
    ├── ForeignNamespaceError         the samples carry another namespace than the requested one
    └── AmbiguousSamplesError         several samples claim to be one value

No failure ever turns into a number: 0 would scale a workload to its minimum. The base class itself is raised for an
internal error, which is counted and logged where it happens. HTTP codes are added by the code that speaks HTTP.
"""

from __future__ import annotations


class ReadingError(Exception):
    """There is no value; the message says what is missing, and what to do about it.

    `public_message` is the part that any client may read, if the message quotes series that may belong to other
    namespaces. The whole message is for the log.
    """

    def __init__(self, message: str, *, public_message: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.public_message = message if public_message is None else public_message


class NoObjectsMatchError(ReadingError):
    """The selector matches no object of the kind in the namespace."""


class NoSampleError(ReadingError):
    """Prometheus has no usable sample for the one object that was requested."""


class UnanswerableSelectorError(ReadingError):
    """The selector, or the metric's rule, does not result in a query."""


class TooMuchDemandError(ReadingError):
    """The namespace, or all together, already have as many different requests or values in demand as allowed."""


class ObjectsNotKnownError(ReadingError):
    """The first list of the kind has not arrived, or reading it is not permitted."""


class SourceUnreachableError(ReadingError):
    """Prometheus was not reached or refused the credentials of the adapter, or something else answered in its place."""


class SourceSlowError(ReadingError):
    """Prometheus did not answer within the time that a request may take."""


class FirstAnswerPendingError(SourceSlowError):
    """The first answer to a new request has not arrived yet: the next request may find it."""


class AnswerTooOldError(ReadingError):
    """The newest answer is older than answers may be."""


class QueryRefusedByPrometheusError(ReadingError):
    """Prometheus understood the request but refuses to answer it."""


class SampleTooOldError(ReadingError):
    """There is a value, but its samples are older than its rule allows (`maxSampleAge`)."""


class NoDataUncertainError(ReadingError):
    """Prometheus gives no value, and the rule's own value for no data (`onNoData`) must not replace it."""


class PartialAnswerError(ReadingError):
    """The answer is incomplete: a number made from it would be too low."""


class ForeignNamespaceError(ReadingError):
    """The rule's own query returns samples that carry another namespace than the request's (`foreignNamespaces`)."""


class AmbiguousSamplesError(ReadingError):
    """Several samples carry the name of one object, or the same labels, so none of them is the value."""
