"""The flags of `tidewatch-adapter serve`: prometheus-adapter's and its own.

Each flag of prometheus-adapter works, is accepted with a warning that says why it has no effect, or is refused with the
reason.
"""

from __future__ import annotations

from pathlib import Path

from adapter.commands.program import PROGRAM
from adapter.commands.serve.certificates import CERTIFICATE_FLAGS
from adapter.commands.serve.identity_flags import IDENTITY_FLAGS
from adapter.commands.serve.rule_objects import METRIC_RULE_FLAGS
from adapter.foundation.options.asking_limit import client_limit_flags
from adapter.foundation.options.cluster import CLUSTER_FLAGS
from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.options.prometheus import PROMETHEUS_FLAGS
from adapter.foundation.options.version import program_version
from adapter.foundation.options.worker import worker_flags
from adapter.foundation.promql.reach import LOOK_BACK_SECONDS
from adapter.foundation.service.flags.table import (
    ADDRESS,
    BOOLEAN,
    DURATION,
    INTEGER,
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
from adapter.foundation.service.server.addresses import Address
from adapter.foundation.service.server.tls import OLD_VERSIONS, VERSIONS

_METRICS = "Metrics"
_SERVING = "Serving"

_NO_HTTP2 = Ignored("this program serves HTTP/1.1, over as many connections as the API server opens")
_NO_PROFILES = Ignored("there is no profiling endpoint")
_NO_AUDIT = Refused("the API server audits requests, since it sees every one of them first")

_CONFIGURATION = (
    Flag(
        name="config",
        kind=PATH,
        repeat=Repeat.EACH,
        short="c",
        required=True,
        help="Rule file, or a folder of *.yaml; may be repeated. Changes take effect without a restart.",
        group=_METRICS,
    ),
    Flag(
        name="metrics-relist-interval",
        kind=DURATION,
        default=60.0,
        help="How often the series of each rule are looked up.",
        group=_METRICS,
    ),
    Flag(
        name="metrics-max-age",
        kind=DURATION,
        help="How old the newest sample of a series may be for the series to count (default: the relist interval).",
        group=_METRICS,
    ),
    Flag(
        name="refresh-interval",
        kind=DURATION,
        default=10.0,
        help=(
            "How often the values in demand are queried again, until the interval of the clients is known; from then "
            "on, half of the shortest interval between two equal requests."
        ),
        group=_METRICS,
    ),
    Flag(
        name="demand-ttl",
        kind=DURATION,
        default=600.0,
        help=(
            "Maximum time that a request stays in demand after it was last made. A repeated request leaves after four "
            "of its own intervals, and a single one after 60 s."
        ),
        group=_METRICS,
    ),
    Flag(
        name="max-demand-per-namespace",
        kind=INTEGER,
        default=2000,
        help="Limit on the different requests of one namespace that are in demand; further ones get status 429.",
        group=_METRICS,
    ),
    Flag(
        name="max-values",
        kind=INTEGER,
        default=5_000_000,
        help=(
            "Limit on the values in memory for all namespaces; beyond it, the namespace with the most values gets "
            "status "
            "429."
        ),
        group=_METRICS,
    ),
    Flag(
        name="max-values-per-namespace",
        kind=INTEGER,
        default=1_000_000,
        help="Limit on the values in memory for the queries of one namespace; further queries get status 429.",
        group=_METRICS,
    ),
    Flag(
        name="max-answer-age",
        kind=DURATION,
        default=60.0,
        help="Largest age of an answer, counted from the evaluation time of its query; an older one is an error.",
        group=_METRICS,
    ),
    Flag(
        name="prometheus-look-back",
        kind=DURATION,
        default=LOOK_BACK_SECONDS,
        help=(
            "Prometheus's --query.lookback-delta: how long Prometheus must be up again before a rule's onNoData "
            "value is "
            "used."
        ),
        group=_METRICS,
    ),
    Flag(
        name="on-no-data",
        kind=one_of("empty", "error"),
        default="empty",
        help="What to answer if no object has a value: an empty list, or status 404.",
        group=_METRICS,
    ),
    Flag(
        name="objects",
        kind=PATH,
        help="Read Kubernetes objects from the *.json and *.yaml files in this folder instead of a cluster.",
        group=_METRICS,
    ),
    Flag(name="lister-kubeconfig", kind=PATH, help="Kubeconfig to read pods and other objects with.", group=_METRICS),
    Flag(
        name="discovery-interval",
        kind=DURATION,
        group=_METRICS,
        state=Ignored("kinds of objects are discovered every five minutes, and whenever a kind is unknown"),
    ),
    *client_limit_flags(_METRICS),
    Flag(
        name="compatibility",
        kind=one_of("prometheus-adapter"),
        group=_METRICS,
        help=(
            "Answer as prometheus-adapter does where our answers differ and both are safe: apiVersion /v1, the time of "
            "the answer itself, thousandths, status codes and texts of errors, no metric before its first series, "
            "samples of other namespaces if a query returns them (default: our answers)."
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
        help="Folder for the self-signed certificate that is made if no certificate is given.",
        group=_SERVING,
    ),
    Flag(
        name="tls-cert-file",
        kind=PATH,
        help="Serving certificate; a renewed file takes effect without a restart.",
        group=_SERVING,
    ),
    Flag(name="tls-private-key-file", kind=PATH, help="Private key of the serving certificate.", group=_SERVING),
    Flag(
        name="tls-min-version",
        kind=one_of(*OLD_VERSIONS, *VERSIONS),
        default="VersionTLS12",
        help="Lowest TLS version; versions below 1.2 are raised to 1.2, with a warning.",
        group=_SERVING,
    ),
    Flag(
        name="tls-cipher-suites",
        kind=TEXT,
        repeat=Repeat.COMMAS,
        help=(
            "Cipher suites of TLS 1.2, by Go's names; weak ones are dropped, with a warning (default: OpenSSL's "
            "choice)."
        ),
        group=_SERVING,
    ),
    Flag(
        name="tls-sni-cert-key",
        kind=TEXT,
        group=_SERVING,
        state=Refused("all clients get the same certificate: set it with --tls-cert-file"),
    ),
    *worker_flags(_SERVING),
    Flag(
        name="max-requests-inflight",
        kind=INTEGER,
        default=0,
        help=(
            "Limit on the requests that are in progress or queued; further ones get status 429, except for health "
            "checks. 0 means the limit on connections, 4,000."
        ),
        group=_SERVING,
    ),
    Flag(
        name="enable-priority-and-fairness",
        kind=BOOLEAN,
        group=_SERVING,
        state=Ignored("requests are answered in the order in which they arrive; --max-requests-inflight limits them"),
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
            state=Ignored("a port in use is an error, so that two servers do not share their clients by accident"),
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
        "Serves custom.metrics.k8s.io, external.metrics.k8s.io and metrics.k8s.io from Prometheus, according to "
        "prometheus-adapter's rule files."
    ),
    examples=(
        f"{PROGRAM} serve --config rules/adapter --prometheus-url http://prometheus:9090",
        f"{PROGRAM} serve --config rules.yaml --secure-port 6443 --refresh-interval 5s",
    ),
    flags=(
        *_CONFIGURATION,
        *METRIC_RULE_FLAGS,
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
