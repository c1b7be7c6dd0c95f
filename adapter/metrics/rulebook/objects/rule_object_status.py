"""The status of a MetricRule object, and when it is written (pure).

Several replicas find nearly the same at nearly the same time, and there is no leader. They agree because each writes
only differences from the current status, keeps the times of unchanged conditions, and never removes another replica's
finding just because it has not made that finding itself. The number of series, which changes all the time, is written
rarely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.metrics.rulebook.findings import Finding, Severity
from adapter.metrics.rulebook.model import METRIC_RULE
from adapter.metrics.rulebook.objects.metric_rule import GROUP, PLURAL, VERSION
from adapter.metrics.rulebook.objects.rule_object_verdict import Ready, Reason, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.stores.oldest_objects import ObjectIdentity

READY: Final = "Ready"
REFUSED: Final = "Refused"
SERIES_SECONDS: Final = 300.0
"""How long the stated number of series is left as it is if nothing else changes."""
LEAST_SECONDS: Final = 10.0
"""How long a status is left as it is unless the spec has changed."""
_LONGEST_MESSAGE: Final = 1024
_MOST_METRICS: Final = 100
_MOST_FINDINGS: Final = 10


def status_of(
    verdict: Verdict, findings: Iterable[Finding], generation: int, former: Mapping[str, Any], now: str
) -> dict[str, Any]:
    """Return the status of an object; `former` is its current one. `now` is the time, RFC 3339 in UTC."""
    refusal = verdict.refusal
    refused = (
        ("True", refusal.reason, refusal.message)
        if refusal is not None
        else ("False", Reason.ACCEPTED, "nothing of it is refused")
    )
    known = _conditions(former)
    shown = [*findings][:_MOST_FINDINGS]
    status = {
        "observedGeneration": generation,
        "conditions": [
            _condition(READY, (verdict.ready.value, verdict.reason, verdict.message), generation, known, now),
            _condition(REFUSED, refused, generation, known, now),
        ],
        "metric": _summary(verdict.metrics),
        "metrics": list(verdict.metrics[:_MOST_METRICS]),
        "findings": [_finding(finding) for finding in shown],
    }
    return status if verdict.series is None else status | {"series": verdict.series}


def seconds_until_due(wanted: Mapping[str, Any], former: Mapping[str, Any], unchanged_seconds: float) -> float | None:
    """Return the seconds until a status is written; 0 if it is written now, and None if it is not written.

    `unchanged_seconds` is how long the object has had its former status.
    """
    if wanted == former or _knows_less(wanted, former):
        return None
    if wanted.get("observedGeneration") != former.get("observedGeneration") or _knows_less(former, wanted):
        return 0.0
    is_rare = _without_series(wanted) == _without_series(former) and wanted.get("series") and former.get("series")
    return max(0.0, (SERIES_SECONDS if is_rare else LEAST_SECONDS) - unchanged_seconds)


def collection_path(namespace: str) -> str:
    """Return the path of the objects of a namespace at the API server."""
    return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}"


def says_too_many(status: Mapping[str, Any], generation: int) -> bool:
    """Return whether a status for this generation of an object says that its namespace has too many objects."""
    refused = _conditions(status).get(REFUSED, {})
    is_current = status.get("observedGeneration") == generation
    return is_current and (refused.get("status"), refused.get("reason")) == ("True", Reason.TOO_MANY_RULES)


def apply_document(identity: ObjectIdentity, status: Mapping[str, Any], resource_version: str = "") -> dict[str, Any]:
    """Return the document that applies (server-side) a status to exactly this object, and to no other of its name.

    With a `resource_version`, the API server refuses it with 409 if the object has changed since: another replica may
    have written the same finding with a time of its own.
    """
    metadata = {"namespace": identity.namespace, "name": identity.name, "uid": identity.uid}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": METRIC_RULE,
        "metadata": metadata | ({"resourceVersion": resource_version} if resource_version else {}),
        "status": status,
    }


def _knows_less(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether one status lacks something that the other, of any replica, states about the same spec."""
    if one.get("observedGeneration") != other.get("observedGeneration"):
        return False
    ready, known = (_conditions(status).get(READY, {}).get("status") for status in (one, other))
    return ready == Ready.UNKNOWN and known in {Ready.YES, Ready.NO}


def _condition(
    kind: str, content: tuple[str, str, str], generation: int, known: Mapping[str, Mapping[str, Any]], now: str
) -> dict[str, Any]:
    """Return a condition as `metav1.Condition` has it; its time is that of the last change of its status."""
    status, reason, message = content
    before = known.get(kind, {})
    changed = str(before.get("lastTransitionTime") or now) if before.get("status") == status else now
    return {
        "type": kind,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": changed,
        "reason": str(reason),
        "message": message[:_LONGEST_MESSAGE],
    }


def _conditions(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    conditions = status.get("conditions")
    found = conditions if isinstance(conditions, list) else []
    return {str(each.get("type")): each for each in found if isinstance(each, dict)}


def _without_series(status: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in status.items() if key != "series"}


def _summary(metrics: tuple[str, ...]) -> str:
    """Return what the column METRIC shows: `pods/http_rps`, or `pods/http_rps (+2)`."""
    first = metrics[0] if metrics else ""
    return f"{first} (+{len(metrics) - 1})" if len(metrics) > 1 else first


def _finding(finding: Finding) -> dict[str, str]:
    severity = "error" if finding.severity is Severity.ERROR else "warning"
    message = finding.message[:_LONGEST_MESSAGE]
    return {"severity": severity, "code": finding.code, "message": message, "fix": finding.fix[:_LONGEST_MESSAGE]}
