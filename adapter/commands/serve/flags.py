"""The flags of `tidewatch-adapter serve`: those of prometheus-adapter, and further ones.

Each flag of prometheus-adapter either works, is accepted with a warning that states why it has no effect, or is refused
with the reason.
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
from adapter.foundation.options.worker import worker_flags
from adapter.foundation.promql.reach import LOOK_BACK_SECONDS
from adapter.foundation.service.flags.table import (
    ADDRESS,
    BOOLEAN,
    DURATION,
    HOST,
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
    in_group,
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
    *in_group(
        _METRICS,
        Flag(
            "config",
            PATH,
            "Rule file, or a folder of *.yaml; may be repeated. Changes take effect without a restart.",
            repeat=Repeat.EACH,
            short="c",
            required=True,
        ),
        Flag("metrics-relist-interval", DURATION, "How often the series of each rule are looked up.", default=60.0),
        Flag(
            "metrics-max-age",
            DURATION,
            "How old the newest sample of a series may be for the series to count (default: the relist interval).",
        ),
        Flag(
            "refresh-interval",
            DURATION,
            "How often the values in demand are queried again, until the interval of the clients is known; from then "
            "on, half of the shortest interval between two equal requests.",
            default=10.0,
        ),
        Flag(
            "demand-ttl",
            DURATION,
            "Maximum time that a request stays in demand after it was last made. A repeated request leaves after "
            "four of its own intervals, and a single one after 60 s.",
            default=600.0,
        ),
        Flag(
            "max-demand-per-namespace",
            INTEGER,
            "Limit on the different requests of one namespace that are in demand; further ones get status 429.",
            default=2000,
        ),
        Flag(
            "max-values",
            INTEGER,
            "Limit on the values in memory for all namespaces; beyond it, the namespace with the most values gets "
            "status 429.",
            default=5_000_000,
        ),
        Flag(
            "max-values-per-namespace",
            INTEGER,
            "Limit on the values in memory for the queries of one namespace; further queries get status 429.",
            default=1_000_000,
        ),
        Flag(
            "max-answer-age",
            DURATION,
            "Largest age of an answer, counted from the evaluation time of its query; an older one is an error.",
            default=60.0,
        ),
        Flag(
            "prometheus-look-back",
            DURATION,
            "Prometheus's --query.lookback-delta: how long Prometheus must be up again before a rule's onNoData "
            "value is used.",
            default=LOOK_BACK_SECONDS,
        ),
        Flag(
            "on-no-data",
            one_of("empty", "error"),
            "What to answer if no object has a value: an empty list, or status 404.",
            default="empty",
        ),
        Flag(
            "objects",
            PATH,
            "Read Kubernetes objects from the *.json and *.yaml files in this folder instead of a cluster.",
        ),
        Flag("lister-kubeconfig", PATH, "Kubeconfig to read pods and other objects with."),
        Flag(
            "discovery-interval",
            DURATION,
            state=Ignored("kinds of objects are discovered every five minutes, and whenever a kind is unknown"),
        ),
    ),
    *client_limit_flags(_METRICS),
    Flag(
        "compatibility",
        one_of("prometheus-adapter"),
        "Answer as prometheus-adapter does where our answers differ and both are safe: apiVersion /v1, the time "
        "of the answer itself, thousandths, status codes and texts of errors, no metric before its first series, "
        "samples of other namespaces if a query returns them (default: our answers).",
        group=_METRICS,
    ),
)

_SERVING_FLAGS = (
    *in_group(
        _SERVING,
        Flag("secure-port", PORT, "Port of the HTTPS API; 0 takes a free one.", default=6443),
        Flag("bind-address", HOST, "Address of the HTTPS API.", default="0.0.0.0"),  # noqa: S104 - prometheus-adapter's default
        Flag(
            "plain-bind-address",
            ADDRESS,
            "Plain HTTP for /metrics, /livez and /readyz; :0 takes a free port and logs it.",
            default=Address("", 9180),
        ),
        Flag(
            "cert-dir",
            PATH,
            "Folder for the self-signed certificate that is made if no certificate is given.",
            default=Path("apiserver.local.config/certificates"),
        ),
        Flag("tls-cert-file", PATH, "Serving certificate; a renewed file takes effect without a restart."),
        Flag("tls-private-key-file", PATH, "Private key of the serving certificate."),
        Flag(
            "tls-min-version",
            one_of(*OLD_VERSIONS, *VERSIONS),
            "Lowest TLS version; versions below 1.2 are raised to 1.2, with a warning.",
            default="VersionTLS12",
        ),
        Flag(
            "tls-cipher-suites",
            TEXT,
            "Cipher suites of TLS 1.2, by Go's names; weak ones are dropped, with a warning (default: OpenSSL's "
            "choice).",
            repeat=Repeat.COMMAS,
        ),
        Flag(
            "tls-sni-cert-key", TEXT, state=Refused("all clients get the same certificate: set it with --tls-cert-file")
        ),
    ),
    *worker_flags(_SERVING),
    *in_group(
        _SERVING,
        Flag(
            "max-requests-inflight",
            INTEGER,
            "Limit on the requests that are in progress or queued; further ones get status 429, except for health "
            "checks. 0 means the limit on connections, 4,000.",
            default=0,
        ),
        Flag(
            "enable-priority-and-fairness",
            BOOLEAN,
            state=Ignored(
                "requests are answered in the order in which they arrive; --max-requests-inflight limits them"
            ),
        ),
        Flag("disable-http2", BOOLEAN, state=_NO_HTTP2),
        Flag("disable-http2-serving", BOOLEAN, state=_NO_HTTP2),
        Flag("http2-max-streams-per-connection", INTEGER, state=_NO_HTTP2),
        Flag("profiling", BOOLEAN, state=_NO_PROFILES),
        Flag("contention-profiling", BOOLEAN, state=_NO_PROFILES),
        Flag("debug-socket-path", TEXT, state=_NO_PROFILES),
        *(
            Flag(
                f"permit-{what}-sharing",
                BOOLEAN,
                state=Ignored("a port in use is an error, so that two servers do not share their clients by accident"),
            )
            for what in ("address", "port")
        ),
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
        *(Flag(name, kind, group="Audit", state=_NO_AUDIT) for name, kind in _AUDIT),
    ),
    passes_over_more=True,
)
