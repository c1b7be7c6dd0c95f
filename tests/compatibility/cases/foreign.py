"""Queries that give samples of other namespaces than that of the request."""

from __future__ import annotations

from typing import Final

from tests.compatibility.form import Case, Custom, External

_DEPLOYMENTS = "{overrides: {namespace: {resource: namespace}, deployment: {group: apps, resource: deployment}}}"
_NAMESPACE = "{overrides: {namespace: {resource: namespace}}}"
_WAITING = 'label_replace(mq_messages{namespace="mq",queue="jobs"}, "deployment", "web", "", "")'


def _of_deployments(name: str) -> dict[str, bool]:
    return {f"deployments.apps/{name}": True, f"namespaces/{name}": False}


DESCRIBED: Final = Case(
    name="a-queue-of-elsewhere",
    rules=f"""\
rules:
- seriesQuery: 'rollout_info{{namespace!="",deployment!=""}}'
  resources: {_DEPLOYMENTS}
  name: {{as: jobs_waiting}}
  metricsQuery: '{_WAITING}'
""",
    series="""\
rollout_info{namespace="shop",deployment="web"} 1
rollout_info{namespace="shop",deployment="db"} 1
mq_messages{namespace="mq",queue="jobs"} 70
mq_messages{namespace="mq",queue="mails"} 5
""",
    custom=_of_deployments("jobs_waiting"),
    asks=(
        Custom(
            path="namespaces/shop/deployments.apps/web/jobs_waiting",
            status=503,
            status_before=200,
            values_before={"web": "70"},
            message="unable to fetch the metric jobs_waiting for deployments.apps web: 'web' has no value: its samples",
        ),
        Custom(path="namespaces/shop/deployments.apps/db/jobs_waiting", status=404),
    ),
)

AT_LARGE: Final = Case(
    name="a-query-of-nobody",
    rules=f"""\
externalRules:
- seriesQuery: 'mails_waiting{{namespace!=""}}'
  resources: {_NAMESPACE}
  name: {{as: mails_waiting_at_large}}
  metricsQuery: sum(mails_waiting{{kind="a"}}) by (namespace)
""",
    series="""\
mails_waiting{namespace="shop",kind="a"} 1
mails_waiting{namespace="other",kind="a"} 1
mails_waiting{namespace="other",kind="b"} 40
""",
    external=frozenset({"mails_waiting_at_large"}),
    asks=(
        External(
            path="shop/mails_waiting_at_large",
            query='sum(mails_waiting{kind="a"}) by (namespace)',
            rows=(({"namespace": "shop"}, "1"), ({"namespace": "other"}, "1")),
        ),
    ),
)

CASES: Final = (DESCRIBED, AT_LARGE)
