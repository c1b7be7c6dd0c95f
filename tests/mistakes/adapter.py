"""User mistakes with the other commands of `tidewatch-adapter`."""

from __future__ import annotations

from typing import Final

from tests.mistakes.check import GOOD
from tests.mistakes.table import Mistake

NODES: Final = "apiVersion: tidewatch.io/v1alpha1\nkind: SchedulingConfiguration\n"


def _in_nodes(name: str, text: str, place: str, cause: str, repair: str) -> Mistake:
    command = "nodes --prometheus-url={down} --scheduling-config nodes.yaml"
    return Mistake(name, command, place, cause, repair, {"nodes.yaml": NODES + text})


ADAPTER: Final = (
    # explain
    Mistake(
        "explain without a metric", "explain --config rules.yaml", "METRIC", "METRIC is missing", "see --help", GOOD
    ),
    Mistake(
        "explain without a namespace",
        "explain pods/open_connections --config rules.yaml --prometheus-url {empty}",
        "pods/open_connections",
        "pods/open_connections gives an error: the metric is namespaced, and no",
        "what to do: set --namespace",
        GOOD,
        1,
    ),
    Mistake(
        "a misspelt metric",
        "explain pods/opne_connections -n shop --config rules.yaml --prometheus-url {empty}",
        "pods/opne_connections",
        "pods/opne_connections in shop has no value: no rule provides",
        "what to do: did you mean open_connections?",
        GOOD,
        1,
    ),
    Mistake(
        "a metric that resembles none",
        "explain pods/queue_depth -n shop --config rules.yaml --prometheus-url {empty}",
        "pods/queue_depth",
        "pods/queue_depth in shop has no value: no rule provides",
        "what to do: check whether Prometheus has such a series at all",
        GOOD,
        1,
    ),
    Mistake(
        "an empty history",
        "explain pods/open_connections -n shop --config rules.yaml --prometheus-url {empty}",
        "pods/open_connections",
        "pods/open_connections in shop has no value: Prometheus has no sample for",
        "what to do: run the query in Prometheus, and check whether its targets are",
        GOOD,
        1,
    ),
    Mistake(
        "explain with Prometheus down",
        "explain pods/open_connections -n shop --config rules.yaml --prometheus-url {down}",
        "pods/open_connections",
        "Connection refused",
        "what to do: check whether Prometheus runs, and its address and credentials",
        GOOD,
        1,
    ),
    Mistake(
        "explain with a wrong selector",
        "explain pods/open_connections -n shop -l 'a in b' --config rules.yaml --prometheus-url {down}",
        "--selector",
        "found 'b' where '(' was expected (at character 5)",
        "write it as for kubectl, such as queue=orders",
        GOOD,
    ),
    Mistake(
        "a server over plain HTTP",
        "explain pods/x -n shop --server http://adapter --server-token-file t",
        "--server",
        "the server's URL cannot be used",
        "write https://HOST[:PORT] and nothing after it",
    ),
    Mistake(
        "server and rules",
        "explain pods/x -n shop --server https://adapter --config rules.yaml",
        "--config",
        "--config cannot be combined with --server, which has its own setting",
        "remove it",
        GOOD,
    ),
    # serve
    Mistake(
        "serve without rules",
        "serve --prometheus-url {down}",
        "--config",
        "--config is required",
        "rule file, or a folder of *.yaml; may be repeated",
    ),
    Mistake(
        "serve with broken rules",
        "serve --config rules.yaml --prometheus-url {down}",
        "rules.yaml:2",
        "while parsing a flow node, did not find expected node content",
        "correct the syntax",
        {"rules.yaml": "rules: [\n"},
    ),
    Mistake(
        "serve a ConfigMap's manifest",
        "serve --config cm.yaml --prometheus-url {down}",
        "cm.yaml:1",
        "this is a ConfigMap, not the rule file in it",
        "apply it to the cluster, mount the ConfigMap, and name the mounted file",
        {"cm.yaml": "kind: ConfigMap\ndata: {a: b}\n"},
    ),
    Mistake(
        "a duration without a unit",
        "serve --config rules.yaml --refresh-interval 5",
        "--refresh-interval",
        "a number has no unit",
        "write numbers with units, such as 1m30s or 500ms",
        GOOD,
    ),
    Mistake(
        "a negative number",
        "serve --config rules.yaml --max-values -1",
        "--max-values",
        "--max-values is -1",
        "write at least 1",
        GOOD,
    ),
    Mistake(
        "a port out of range",
        "serve --config rules.yaml --secure-port 66000",
        "--secure-port",
        "'66000' is not a port",
        "write a number from 0 to 65535",
        GOOD,
    ),
    Mistake(
        "one port for two things",
        "serve --config rules.yaml --prometheus-url {down} --objects . --cert-dir c --secure-port 9180",
        ":9180",
        "cannot listen on 0.0.0.0:9180 for requests, and on :9180 for metrics and health",
        "give each a port of its own",
        GOOD,
    ),
    Mistake(
        "a certificate without its key",
        "serve --config rules.yaml --tls-cert-file c.pem",
        "--tls-cert-file",
        "--tls-cert-file and --tls-private-key-file belong together",
        "set both, or neither",
        GOOD,
    ),
    Mistake(
        "TLS files that are missing",
        "serve --config rules.yaml --tls-cert-file c.pem --tls-private-key-file k.pem",
        "c.pem",
        "cannot be read (No such file or directory)",
        "check the path and its permissions",
        GOOD,
    ),
    Mistake(
        "a host with a port",
        "serve --config rules.yaml --bind-address localhost:6443",
        "--bind-address",
        "'localhost:6443' is not a host alone",
        "write it without brackets, and its port with the other flag",
        GOOD,
    ),
    Mistake(
        "an interval of nothing",
        "serve --config rules.yaml --prometheus-url {down} --refresh-interval 0s",
        "--refresh-interval",
        "--refresh-interval is 0 s",
        "write a duration above 0, such as 30s",
        GOOD,
    ),
    Mistake(
        "folders for TLS files",
        "serve --config rules.yaml --tls-cert-file . --tls-private-key-file .",
        ".",
        "cannot be read (it is not a regular file)",
        "check the path and its permissions",
        GOOD,
    ),
    # nodes
    Mistake(
        "nodes with a URL without a scheme",
        "nodes --prometheus-url prometheus:9090",
        "--prometheus-url",
        "Prometheus URL has no http:// or https:// or no host",
        "write http(s)://HOST[:PORT][/PREFIX]",
    ),
    Mistake(
        "nodes with the address of a page",
        "nodes --prometheus-url 'http://127.0.0.1:9090/graph?g0.expr=up&g0.tab=1'",
        "--prometheus-url",
        "Prometheus URL is that of a page in a browser (parameter 'g0.expr')",
        "write http(s)://HOST[:PORT][/PREFIX]",
    ),
    Mistake(
        "nodes with the address of the API",
        "nodes --prometheus-url http://127.0.0.1:9090/api/v1/query",
        "--prometheus-url",
        "Prometheus URL ends with '/api/v1/query', which every request adds",
        "leave it out",
    ),
    _in_nodes(
        "an unknown policy of scores",
        "policies: [{name: target-load}]\n",
        "nodes.yaml:3",
        "'target-load' is not a policy",
        "did you mean target-load-packing?",
    ),
    _in_nodes(
        "a percentage without its sign",
        "filter: {cpu: 0.8}\n",
        "nodes.yaml:3",
        "'0.8' is not a percentage",
        "write a percentage above 0% and up to 1000%, such as 5%",
    ),
    _in_nodes(
        "two problems",
        "hotspots: {rounds: x}\nfilter: {cpu: y}\n",
        "nodes.yaml:3",
        "'x' is not a whole number",
        "write a whole number from 1 to 1000",
    ),
    _in_nodes(
        "a weight below 1",
        "policies: [{name: peaks, weight: -1}]\n",
        "nodes.yaml:3",
        "`weight` is -1",
        "write a whole number from 1 to 1000",
    ),
    Mistake(
        "no scheduling file",
        "nodes --prometheus-url={down} --scheduling-config none.yaml",
        "none.yaml",
        "No such file or directory",
        "check that it exists and is readable",
    ),
    # readiness
    Mistake(
        "readiness without a metric",
        "readiness --metrics-url http://127.0.0.1:9000/metrics --limit 5",
        "--metric",
        "--metric is required",
        "metric that counts the open connections, as in websocket_connections or",
    ),
    Mistake(
        "readiness over TLS",
        "readiness --metrics-url https://127.0.0.1:9000/metrics --metric a --limit 5",
        "--metrics-url",
        "'https://127.0.0.1:9000/metrics' is not an http:// URL",
        "the metric is read inside the pod, so TLS is not supported",
    ),
    Mistake(
        "a limit of zero",
        "readiness --metrics-url http://127.0.0.1:9000/metrics --metric a --limit 0",
        "--limit",
        "--limit=0",
        "write the number of connections at which the pod is full, 1 or more",
    ),
    Mistake(
        "a ratio in percent",
        "readiness --metrics-url http://127.0.0.1:9000/metrics --metric a --limit 5 --resume-ratio 95",
        "--resume-ratio",
        "--resume-ratio=95",
        "write a number above 0 and at most 1, such as 0.95",
    ),
    Mistake(
        "a port in use",
        "readiness --metrics-url http://127.0.0.1:9000/metrics --metric a --limit 5 --listen {plain}",
        "cannot listen on 127.0.0.1:",
        "another process listens on this address",
        "stop it, or choose another port",
        status=1,
    ),
    # doctor
    Mistake(
        "doctor without a cluster",
        "doctor --kubeconfig none",
        "kubeconfig none",
        "there is no such file: ",
        "name a valid kubeconfig, or run in a pod with a service account",
    ),
    Mistake(
        "doctor with a broken kubeconfig",
        "doctor --kubeconfig kubeconfig",
        "kubeconfig kubeconfig",
        "there is no key current-context",
        "name a valid kubeconfig, or run in a pod with a service account",
        {"kubeconfig": "clusters: []\n"},
    ),
    Mistake(
        "doctor with a cluster that is down",
        "doctor --kubeconfig {gone}",
        "kube-apiserver",
        "error: kube-apiserver: it does not answer",
        "check the address and the CA in the kubeconfig, and whether this machine reaches it",
        status=1,
    ),
    Mistake(
        "credentials of a program that is missing",
        "doctor --kubeconfig {nobody}",
        "kubeconfig ",
        "no-such-program, which `exec` names, is not installed",
        "install it, or write its path into `command`",
    ),
    Mistake(
        "doctor with a wrong name",
        "doctor --kubeconfig {kubeconfig} --service tidewatch",
        "--service",
        "'tidewatch' is not",
        "NAMESPACE/NAME",
    ),
)
