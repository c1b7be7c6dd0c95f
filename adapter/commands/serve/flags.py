"""The flags of `tidewatch-adapter serve`: prometheus-adapter's and its own.

Each of prometheus-adapter's works, is accepted with a warning that says why it means nothing here, or is refused with
the reason.
"""

from __future__ import annotations

from pathlib import Path

from adapter.commands.program import PROGRAM
from adapter.commands.serve.certificates import CERTIFICATE_FLAGS
from adapter.commands.serve.identity import IDENTITY_FLAGS
from adapter.options.cluster import CLUSTER_FLAGS
from adapter.options.logs import LOG_FLAGS
from adapter.options.prometheus import PROMETHEUS_FLAGS
from adapter.options.version import program_version
from adapter.rulebook.plans.reach import LOOK_BACK_SECONDS
from adapter.service.flags.table import (
    ADDRESS,
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    PATH,
    PORT,
    TEXT,
    CommandFlags,
    Flag,
    Ignored,
    Kind,
    Refused,
    Repeat,
    one_of,
)
from adapter.service.server.addresses import Address
from adapter.service.server.tls import OLD_VERSIONS, VERSIONS

_METRICS = "Metrics"
_SERVING = "Serving"

_NO_HTTP2 = Ignored("HTTP/1.1 is spoken, over as many connections as the API server opens")
_NO_PROFILES = Ignored("there is no profiling endpoint")
_NO_AUDIT = Refused("requests are audited by the API server, which sees every one of them first")

_CONFIGURATION = (
    Flag(
        name="config",
        kind=PATH,
        repeat=Repeat.EACH,
        short="c",
        required=True,
        help="Rule file, or a folder of *.yaml; may be repeated. Changes are taken in while running.",
        group=_METRICS,
    ),
    Flag(
        name="metrics-relist-interval",
        kind=DURATION,
        default=60.0,
        help="How often each rule's series are looked up.",
        group=_METRICS,
    ),
    Flag(
        name="metrics-max-age",
        kind=DURATION,
        help="How far back a series may lie to count as there (default: the relist interval).",
        group=_METRICS,
    ),
    Flag(
        name="refresh-interval",
        kind=DURATION,
        default=10.0,
        help=(
            "How often what is asked for is queried anew, until the askers' own interval is known: then half of the "
            "shortest at which one same request returns."
        ),
        group=_METRICS,
    ),
    Flag(
        name="demand-ttl",
        kind=DURATION,
        default=600.0,
        help=(
            "How long a request counts as asked for after it came last, at most: it leaves after four of its own "
            "intervals, one that was asked once after 60 s."
        ),
        group=_METRICS,
    ),
    Flag(
        name="max-demand-per-namespace",
        kind=INTEGER,
        default=2000,
        help="Different requests that one namespace may have standing; beyond, 429.",
        group=_METRICS,
    ),
    Flag(
        name="max-values",
        kind=INTEGER,
        default=5_000_000,
        help="Values held in memory for all namespaces; beyond, 429 for the namespace that holds the most.",
        group=_METRICS,
    ),
    Flag(
        name="max-values-per-namespace",
        kind=INTEGER,
        default=1_000_000,
        help="Values held in memory for the queries of one namespace; beyond, 429.",
        group=_METRICS,
    ),
    Flag(
        name="max-answer-age",
        kind=DURATION,
        default=60.0,
        help="Answers older than this are an error: now minus the evaluation time of the query.",
        group=_METRICS,
    ),
    Flag(
        name="prometheus-look-back",
        kind=DURATION,
        default=LOOK_BACK_SECONDS,
        help="Prometheus's --query.lookback-delta: so long it must be back before a rule's onNoData value stands in.",
        group=_METRICS,
    ),
    Flag(
        name="on-no-data",
        kind=one_of("empty", "error"),
        default="empty",
        help="What is answered where nothing has a value: an empty list, or 404.",
        group=_METRICS,
    ),
    Flag(
        name="objects",
        kind=PATH,
        help="Take Kubernetes objects from the *.json and *.yaml of this folder instead of a cluster.",
        group=_METRICS,
    ),
    Flag(name="lister-kubeconfig", kind=PATH, help="Kubeconfig for pods and other objects.", group=_METRICS),
    Flag(
        name="discovery-interval",
        kind=DURATION,
        group=_METRICS,
        state=Ignored("kinds of objects are discovered every five minutes, and when one is not known"),
    ),
    Flag(
        name="client-qps",
        kind=NUMBER,
        help=(
            "Requests a second that lists, watches and discovery may send to the API server; 0 sets no limit (default: "
            "none, as pods are watched and not listed for each request; 5 where --client-burst is given)."
        ),
        group=_METRICS,
    ),
    Flag(
        name="client-burst",
        kind=INTEGER,
        default=10,
        help="How many of them may be sent at once.",
        group=_METRICS,
    ),
    Flag(
        name="compatibility",
        kind=one_of("prometheus-adapter"),
        group=_METRICS,
        help=(
            "Give prometheus-adapter's answers where ours differ and either are safe: apiVersion /v1, the answer's own "
            "time, thousandths, codes and words of errors, no metric before its first series, samples of other "
            "namespaces where a query gives them (default: ours)."
        ),
    ),
)

_SERVING_FLAGS = (
    Flag(
        name="secure-port", kind=PORT, default=6443, help="Port of the HTTPS API; 0 takes a free one.", group=_SERVING
    ),
    Flag(name="bind-address", kind=TEXT, default="0.0.0.0", help="Address of the HTTPS API.", group=_SERVING),  # noqa: S104 - prometheus-adapter's default
    Flag(
        name="plain-bind-address",
        kind=ADDRESS,
        default=Address("", 9180),
        help="Plain HTTP for /metrics, /livez and /readyz; :0 takes a free port and logs it.",
        group=_SERVING,
    ),
    Flag(
        name="cert-dir",
        kind=PATH,
        default=Path("apiserver.local.config/certificates"),
        help="Where a self-made certificate is kept when none is given.",
        group=_SERVING,
    ),
    Flag(name="tls-cert-file", kind=PATH, help="Serving certificate; renewed files are taken in.", group=_SERVING),
    Flag(name="tls-private-key-file", kind=PATH, help="Its key.", group=_SERVING),
    Flag(
        name="tls-min-version",
        kind=one_of(*OLD_VERSIONS, *VERSIONS),
        default="VersionTLS12",
        help="Lowest TLS version; older ones than 1.2 are taken for 1.2, with a warning.",
        group=_SERVING,
    ),
    Flag(
        name="tls-cipher-suites",
        kind=TEXT,
        repeat=Repeat.COMMAS,
        help="Suites of TLS 1.2, by Go's names; weak ones are left out, with a warning (default: OpenSSL's choice).",
        group=_SERVING,
    ),
    Flag(
        name="tls-sni-cert-key",
        kind=TEXT,
        group=_SERVING,
        state=Refused("one certificate is shown to everybody: give it by --tls-cert-file"),
    ),
    Flag(
        name="shutdown-delay",
        kind=DURATION,
        default=5.0,
        help="How long SIGTERM is served on, while endpoints are taken out.",
        group=_SERVING,
    ),
    Flag(
        name="pin-cpu",
        kind=BOOLEAN,
        default=False,
        help="Keep the worker on one core: less CPU for the same work where cores are plenty.",
        group=_SERVING,
    ),
    Flag(
        name="max-requests-inflight",
        kind=INTEGER,
        default=0,
        help=(
            "Requests that may be answered, or wait to be, at once; beyond, 429, but for health. 0: as many as there "
            "are connections, 4,000."
        ),
        group=_SERVING,
    ),
    Flag(
        name="enable-priority-and-fairness",
        kind=BOOLEAN,
        group=_SERVING,
        state=Ignored("requests are answered in the order in which they come; --max-requests-inflight limits them"),
    ),
    Flag(name="disable-http2", kind=BOOLEAN, group=_SERVING, state=_NO_HTTP2),
    Flag(name="disable-http2-serving", kind=BOOLEAN, group=_SERVING, state=_NO_HTTP2),
    Flag(name="http2-max-streams-per-connection", kind=INTEGER, group=_SERVING, state=_NO_HTTP2),
    Flag(name="profiling", kind=BOOLEAN, group=_SERVING, state=_NO_PROFILES),
    Flag(name="contention-profiling", kind=BOOLEAN, group=_SERVING, state=_NO_PROFILES),
    Flag(name="debug-socket-path", kind=TEXT, group=_SERVING, state=_NO_PROFILES),
    *(
        Flag(
            name=f"permit-{what}-sharing",
            kind=BOOLEAN,
            group=_SERVING,
            state=Ignored("a port in use is an error, so that two servers do not share their callers by accident"),
        )
        for what in ("address", "port")
    ),
)

_AUDIT: tuple[tuple[str, Kind], ...] = (
    ("audit-policy-file", PATH),
    *((f"audit-log-{name}", TEXT) for name in ("path", "format", "mode", "maxage", "maxbackup", "maxsize", "version")),
    *((f"audit-webhook-{name}", TEXT) for name in ("config-file", "initial-backoff", "mode", "version")),
    *(
        (f"audit-{output}-{name}", TEXT)
        for output in ("log", "webhook")
        for name in (
            "batch-buffer-size",
            "batch-max-size",
            "batch-max-wait",
            "batch-throttle-burst",
            "batch-throttle-enable",
            "batch-throttle-qps",
            "truncate-enabled",
            "truncate-max-batch-size",
            "truncate-max-event-size",
        )
    ),
    ("audit-log-compress", BOOLEAN),
)

SERVE = CommandFlags(
    program=f"{PROGRAM} serve",
    version=program_version(),
    summary=(
        "Serves custom.metrics.k8s.io, external.metrics.k8s.io and metrics.k8s.io from Prometheus, by "
        "prometheus-adapter's rule files."
    ),
    flags=(
        *_CONFIGURATION,
        *PROMETHEUS_FLAGS,
        *CLUSTER_FLAGS,
        *_SERVING_FLAGS,
        *CERTIFICATE_FLAGS,
        *IDENTITY_FLAGS,
        *LOG_FLAGS,
        *(Flag(name=name, kind=kind, group="Audit", state=_NO_AUDIT) for name, kind in _AUDIT),
    ),
    passes_over_more=True,
)
