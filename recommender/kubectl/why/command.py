"""`kubectl tidewatch why KIND/NAME`: prints the answer, and exits with a status that a script can use."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Final, NoReturn

from adapter.commands.explain.server import PATH_ON_SERVER, SERVER_FLAGS, server_client
from adapter.foundation.objects.names import is_namespace_name, is_object_name
from adapter.foundation.objects.resources import UnknownResourceError
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.options.cluster import CLUSTER_FLAGS, cluster_settings
from adapter.foundation.options.cluster_checks import unreachable_message
from adapter.foundation.options.logs import QUIET_LOG_FLAGS, configure_quiet_logs_by
from adapter.foundation.options.report_format import FOR_PEOPLE
from adapter.foundation.reports.terminal_escaping import is_coloured, printable
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.table import OBJECT, TEXT, CommandFlags, Flag, FlagValues
from adapter.foundation.sources.kubernetes.client import RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.context_namespace import context_namespace
from adapter.foundation.sources.kubernetes.errors import KubernetesError, UnreachableError
from adapter.metrics.readings.explain.explanation import Explanation, NoExplanationError, explanation_of
from recommender.kubectl.program import PROGRAM
from recommender.kubectl.reader import Kinds, NotRead, Reader
from recommender.kubectl.recommendations import RECOMMENDER_FLAG, recommendations
from recommender.kubectl.report import OUTPUT_FLAG, Report, as_text, document_text
from recommender.kubectl.why.autoscaler import why_autoscaler
from recommender.kubectl.why.observed import EXTERNAL, RESOURCE, AskedMetric
from recommender.kubectl.why.pod import why_pod
from recommender.kubectl.why.workload import why_workload

_APIS: Final = {EXTERNAL: "external", RESOURCE: "resource"}


def explanation(values: FlagValues, asked: AskedMetric, namespace: str) -> Explanation | NotRead:
    """Return the explanation, by the adapter that `--server` names, of why the metric has or lacks a value."""
    parameters = {
        "metric": asked.metric,
        "namespace": namespace,
        "api": _APIS.get(asked.api, "custom"),
        "object": asked.described,
        "selector": asked.selector,
    }
    try:
        answer = server_client(values).get(PATH_ON_SERVER, {name: text for name, text in parameters.items() if text})
        return explanation_of(answer)
    except (UsageError, KubernetesError) as error:
        return NotRead(f"rule and query of {asked.metric}: {values.text('server')}: {error}")
    except NoExplanationError:
        return NotRead(f"rule and query of {asked.metric}: --server does not name a tidewatch-adapter")


_DEADLINES: Final = RequestDeadlines(connect=5.0, silence=15.0, total=20.0)
_HPA: Final = frozenset({"hpa", "horizontalpodautoscaler", "horizontalpodautoscalers"})
_POD: Final = frozenset({"pod", "pods", "po"})
_SHORT: Final = {"deploy": "deployment", "sts": "statefulset", "rs": "replicaset", "rc": "replicationcontroller"}

WHY: Final = CommandFlags(
    program=f"{PROGRAM} why",
    summary=(
        "Explains an HPA, a workload or a pod, with your own rights: OBJECT is hpa/NAME, pod/NAME, deployment/NAME, or "
        "another KIND/NAME with a size. Exits with status 1 if a value or a right is missing, and with 2 if the object "
        "cannot be read."
    ),
    arguments=(OBJECT,),
    examples=(f"{PROGRAM} why hpa/web -n shop", f"{PROGRAM} why deployment/web -n shop -o yaml"),
    flags=(
        Flag("namespace", TEXT, "Namespace of the object (default: that of the context).", short="n"),
        OUTPUT_FLAG,
        RECOMMENDER_FLAG,
        *SERVER_FLAGS,
        *CLUSTER_FLAGS,
        *QUIET_LOG_FLAGS,
    ),
)


def why(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(WHY, arguments)
    configure_quiet_logs_by(values)
    try:
        report = _report_for(values)
    except UnreachableError as error:
        exit_for_usage(PROGRAM, printable(unreachable_message(str(error))))
    except (UsageError, KubernetesError, UnknownResourceError) as error:
        exit_for_usage(PROGRAM, printable(str(error)))
    form = values.text("output")
    text = as_text(report, colour=is_coloured()) if form in FOR_PEOPLE else document_text(report.document(), form)
    print(text)  # noqa: T201 - the output of the command
    sys.exit(0 if report.is_complete else 1)


def _report_for(values: FlagValues) -> Report:
    kind, slash, name = values.arguments[0].partition("/")
    if not slash or not is_object_name(name):
        raise UsageError(f"{values.arguments[0]!r} is not KIND/NAME: write hpa/web, deployment/web or pod/web-0")
    cluster = cluster_settings(values)
    kubeconfig = None if cluster.kubeconfig is None else str(cluster.kubeconfig)
    namespace = values.text("namespace") or context_namespace(kubeconfig, cluster.context)
    if not is_namespace_name(namespace):
        raise UsageError(f"--namespace: {namespace!r} cannot be the name of a namespace: write one such as shop")
    client = kubernetes_client(cluster, _DEADLINES)
    reader, resolve = Reader(client), Kinds(client).resource
    decided = partial(recommendations, reader, values.text("recommender"))
    now = time.time()
    wanted = kind.lower()
    if wanted in _HPA:
        explain = partial(explanation, values, namespace=namespace) if values.text("server") else None
        return why_autoscaler(reader, resolve, explain, namespace, name, now)
    if wanted in _POD:
        return why_pod(reader, namespace, name, decided, now)
    plural, _, group = _SHORT.get(wanted, wanted).partition(".")
    return why_workload(reader, resolve(group, plural), namespace, name, decided(), now)
