"""The command line: prometheus-adapter's flags in both spellings, our own, the environment, and what is refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from adapter.commands.serve.flags import SERVE
from adapter.commands.serve.serve_settings import serve_settings
from adapter.foundation.options.clients import AskingLimit
from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from adapter.foundation.service.flags.table import PATH, Ignored, Refused
from demo.machine.ports import free_port
from demo.machine.processes import start
from tests.adapter.commands.harness import RULES, SHOP
from tests.support.fake_apiserver import TOKEN, FakeApiServer
from tests.support.forked import run
from tests.support.serving import FRONT_PROXY, PROGRAM, Adapter, Trust, eventually, serving_flags

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.sources.prometheus.prometheus_settings import Access
    from demo.machine.prometheus import PrometheusProcess

NOWHERE = "http://127.0.0.1:9"

WORKING = {
    "prometheus-verb": "GET",
    "prometheus-header": "X-Scope-OrgID=1",
    "metrics-relist-interval": "1m",
    "metrics-max-age": "2m",
    "tls-min-version": "VersionTLS12",
    "tls-cipher-suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "requestheader-username-headers": "X-Remote-User",
    "requestheader-group-headers": "X-Remote-Group",
    "requestheader-extra-headers-prefix": "X-Remote-Extra-",
    "requestheader-uid-headers": "X-Remote-Uid",
    "authorization-always-allow-paths": "/healthz,/readyz,/version",
    "v": "2",
    "refresh-interval": "5s",
    "demand-ttl": "10m",
    "max-demand-per-namespace": "100",
    "max-values": "1000000",
    "max-values-per-namespace": "100000",
    "client-qps": "50",
    "client-burst": "100",
    "max-requests-inflight": "400",
    "max-answer-age": "60s",
    "prometheus-look-back": "5m",
    "on-no-data": "empty",
    "compatibility": "prometheus-adapter",
    "log-format": "text",
    "log-level": "info",
    "cert-dir": "/nowhere/certificates",
}
"""prometheus-adapter's flags that work without further preparation, and our own flags."""
IGNORED = {
    "discovery-interval": "10m",
    "http2-max-streams-per-connection": "100",
    "debug-socket-path": "",
    "stderrthreshold": "2",
    "vmodule": "",
    "log-flush-frequency": "5s",
    "log-dir": "/nowhere",
    "log-file": "/nowhere/log",
    "log-file-max-size": "1800",
    "log-backtrace-at": ":0",
    "log-link": "/nowhere",
    "logbuflevel": "0",
}
IGNORED_SWITCHES = (
    "disable-http2",
    "disable-http2-serving",
    "profiling",
    "enable-priority-and-fairness",
    "contention-profiling",
    "permit-port-sharing",
    "permit-address-sharing",
    "logtostderr",
    "alsologtostderr",
    "add-dir-header",
    "one-output",
    "skip-headers",
    "skip-log-headers",
)
REFUSED = {
    "tls-sni-cert-key": "a.crt,a.key",
    "audit-policy-file": "p.yaml",
    "audit-log-path": "-",
    "audit-log-maxage": "1",
    "audit-log-compress": "true",
    "audit-webhook-config-file": "w.yaml",
    "audit-webhook-batch-max-size": "1",
    "audit-log-truncate-enabled": "true",
}


def test_a_prometheus_adapter_command_line_runs_with_only_the_program_name_changed(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    """The port for metrics and health, which prometheus-adapter lacks, must be free, and comes from the environment."""
    (tmp_path / "rules.yaml").write_text(RULES)
    with FakeApiServer() as cluster:
        cluster.put("pods", "shop", "web-0", {"app": "web"})
        publish_front_proxy(cluster, trust)
        cluster.reviews.allow("system:authenticated", "get", "*/open_connections", "custom.metrics.k8s.io")
        cluster.reviews.allow_path("system:authenticated", "get", "/apis")
        kubeconfig = cluster.kubeconfig(tmp_path / "config")
        command = [
            *(PROGRAM, "serve", f"--secure-port={free_port()}", "--bind-address=127.0.0.1"),
            *(f"--tls-cert-file={trust.server.certificate_file}", f"--tls-private-key-file={trust.server.key_file}"),
            *(f"--lister-kubeconfig={kubeconfig}", f"--authentication-kubeconfig={kubeconfig}"),
            *(f"--authorization-kubeconfig={kubeconfig}", f"--prometheus-url={prometheus.url}"),
            *(f"--config={tmp_path / 'rules.yaml'}", "--metrics-relist-interval=30s", "--metrics-max-age=1m"),
        ]
        plain = {"TIDEWATCH_FLAG_PLAIN_BIND_ADDRESS": "127.0.0.1:0"}
        with start(command, log_path=tmp_path / "log", name="adapter", environment=plain) as process:
            adapter = Adapter(process, trust)
            adapter.wait_for(" serving address=")
            eventually(lambda: adapter.plain("/readyz").status == 200)
            with adapter.caller() as caller:
                assert caller.get("/apis").status == 200
                eventually(lambda: caller.pods("open_connections", labelSelector="app=web").status == 200)
            assert not adapter.said(" WARNING ")
            process.kill()


def publish_front_proxy(cluster: FakeApiServer, trust: Trust) -> None:
    """Put into the cluster what kube-apiserver publishes of its front proxy."""
    data = {
        "requestheader-client-ca-file": trust.front_proxies.ca_file.read_text(),
        "requestheader-allowed-names": f'["{FRONT_PROXY}"]',
        "client-ca-file": trust.other_authority.ca_file.read_text(),
    }
    cluster.put_config_map("kube-system", "extension-apiserver-authentication", data)


@pytest.mark.parametrize("spelling", ["--flag=value", "--flag value"])
def test_every_flag_is_accepted_and_ignored_ones_are_logged_once(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess, spelling: str
) -> None:
    pairs = {**WORKING, **IGNORED}
    if spelling == "--flag=value":
        flags = [f"--{name}={value}" for name, value in pairs.items()]
        flags += [f"--{name}=true" for name in IGNORED_SWITCHES]
    else:
        flags = [part for name, value in pairs.items() for part in (f"--{name}", value)]
        flags += [f"--{name}" for name in IGNORED_SWITCHES]
    with (
        SHOP.adapter(tmp_path, trust, prometheus, *flags) as adapter,
        adapter.caller() as caller,
    ):
        # With --compatibility nothing is served before its series were looked up.
        eventually(lambda: caller.pods("open_connections", labelSelector="app=web").status == 200)
        assert len(caller.pods("open_connections", labelSelector="app=web").values) == 3
        for name in (*IGNORED, *IGNORED_SWITCHES):
            assert len(adapter.said(rf" WARNING \S+ --{name} has no effect: ")) == 1
        for name in WORKING:
            assert not adapter.said(rf" WARNING \S+ --{name} ")


def test_all_ignored_flags_are_tested() -> None:
    ignored = {flag.name for flag in SERVE.flags if isinstance(flag.state, Ignored)}
    assert ignored == {*IGNORED, *IGNORED_SWITCHES}


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_flags_are_refused_with_the_reason(name: str) -> None:
    with pytest.raises(UsageError, match=rf"^--{name} is not supported: \w+ "):
        parse_flags(SERVE, ["--config=a", f"--{name}={REFUSED[name]}"], {})


WRONG = [
    (["--audit-log-path=-"], "--audit-log-path is not supported: the API server audits requests"),
    (["--prometheus-ulr=http://a"], "unknown flag --prometheus-ulr: did you mean --prometheus-url?"),
    (["--metrics-relist-interval=1"], "--metrics-relist-interval: "),
    (["--metrics-relist-interval=2m", "--metrics-max-age=1m"], "--metrics-max-age (60 s) is shorter than"),
    (["--refresh-interval=100ms"], "--refresh-interval is 0.1 s: write at least 1 s"),
    (["--max-answer-age=0s"], "--max-answer-age is 0 s: write a duration above 0, such as 30s"),
    (["--prometheus-look-back=0s"], "--prometheus-look-back is 0 s: write a duration above 0, such as 30s"),
    (["--max-demand-per-namespace=0"], "--max-demand-per-namespace is 0: "),
    (["--max-values=0"], "--max-values is 0: write at least 1"),
    (["--max-values-per-namespace=-1"], "--max-values-per-namespace is -1: write at least 1"),
    (["--client-qps=many"], "--client-qps: 'many' is not a number: write one such as 2.5"),
    (["--client-qps=nan"], "--client-qps: 'nan' is not a finite number: write one such as 2.5"),
    (["--client-burst=0"], "--client-burst is 0: write at least 1"),
    (["--max-requests-inflight=-1"], "--max-requests-inflight is -1: write 0 or more"),
    (["--on-no-data=zero"], "--on-no-data: 'zero' is not allowed: write empty or error"),
    (["--secure-port=70000"], "--secure-port: "),
    (["--prometheus-verb=PUT"], "--prometheus-verb: 'PUT' is not allowed: write GET or POST"),
    (["--prometheus-url=localhost:9090"], "Prometheus URL has no http:// or https://"),
    (["--prometheus-header=nonsense"], "--prometheus-header has no name before the equals sign: write NAME=VALUE"),
    (
        ["--prometheus-header=Authorization: Bearer abc="],
        "--prometheus-header: Authorization is followed by a colon: write Authorization=VALUE",
    ),
    (
        ["--prometheus-header=X-Scope-OrgID: team"],
        "--prometheus-header: X-Scope-OrgID is followed by a colon: write X-Scope-OrgID=VALUE",
    ),
    (["--prometheus-auth-incluster", "--prometheus-auth-config=a"], "cannot be combined"),
    (["--tls-private-key-file="], "belong together"),
    (["--tls-cert-file=/nowhere.crt"], "/nowhere.crt: cannot be read"),
    (["--tls-cipher-suites=ROT13"], "--tls-cipher-suites: "),
    (["--requestheader-client-ca-file=/nowhere.crt"], "/nowhere.crt"),
    (["--client-ca-file=/nowhere.crt"], "/nowhere.crt"),
    (["--front-proxy-authorized-ttl=-1s"], "--front-proxy-authorized-ttl is -1 s: write 0 or more"),
    (
        ["--authorization-always-allow-paths=/a*b"],
        "--authorization-always-allow-paths: /a*b: a * is only allowed at the end",
    ),
    (["--cert-dir=", "--tls-cert-file=", "--tls-private-key-file="], "--cert-dir is empty"),
]


@pytest.mark.parametrize(
    ("flags", "words"), WRONG, ids=[flags[-1].partition("=")[0] + str(n) for n, (flags, _) in enumerate(WRONG)]
)
def test_invalid_flags_are_refused_before_a_port_is_opened(
    tmp_path: Path, trust: Trust, flags: list[str], words: str
) -> None:
    line = [*serving_flags(tmp_path, NOWHERE, RULES, {}), *trust.flags(), *flags]
    with pytest.raises(UsageError, match=re.escape(words)):
        serve_settings(parse_flags(SERVE, line, {}))


@pytest.mark.parametrize(
    ("flags", "limit"),
    [
        ((), None),
        (("--client-qps=2.5",), AskingLimit(2.5, 10)),
        (("--client-qps=20", "--client-burst=40"), AskingLimit(20.0, 40)),
        (("--client-burst=40",), AskingLimit(5.0, 40)),
        (("--client-qps=-1",), None),
        (("--client-qps=0", "--client-burst=40"), None),
    ],
)
def test_requests_to_the_api_server_can_be_limited(
    tmp_path: Path, trust: Trust, flags: tuple[str, ...], limit: AskingLimit | None
) -> None:
    line = [*serving_flags(tmp_path, NOWHERE, RULES, {}), *trust.flags(), *flags]
    assert serve_settings(parse_flags(SERVE, line, {})).objects.limit == limit


@pytest.mark.parametrize(("flags", "most"), [((), 0), (("--max-requests-inflight=40",), 40)])
def test_concurrent_requests_can_be_limited(tmp_path: Path, trust: Trust, flags: tuple[str, ...], most: int) -> None:
    line = [*serving_flags(tmp_path, NOWHERE, RULES, {}), *trust.flags(), *flags]
    assert serve_settings(parse_flags(SERVE, line, {})).server.connections.most_requests == most


def test_an_empty_config_flag_is_refused() -> None:
    with pytest.raises(UsageError, match="--config is empty"):
        serve_settings(parse_flags(SERVE, ["--config="], {}))


def test_wrong_usage_is_one_line_and_exit_2(tmp_path: Path, trust: Trust) -> None:
    for flags, words in (WRONG[1], WRONG[3]):
        ended = run("serve", *serving_flags(tmp_path, NOWHERE, RULES, {}), *trust.flags(), *flags)
        assert (ended.code, ended.out) == (2, "")
        assert ended.error.startswith(f"tidewatch-adapter: {words}")
        assert ended.error.count("\n") == 1


@pytest.mark.parametrize("separator", ["=", " "])
def test_flags_configure_the_connection_to_prometheus(tmp_path: Path, trust: Trust, separator: str) -> None:
    pair, token = trust.front_proxy, tmp_path / "token"
    given = [
        f"--prometheus-url{separator}https://thanos.example/prefix",
        f"--prometheus-ca-file{separator}{trust.serving.ca_file}",
        f"--prometheus-client-tls-cert-file{separator}{pair.certificate_file}",
        f"--prometheus-client-tls-key-file{separator}{pair.key_file}",
        f"--prometheus-token-file{separator}{token}",
        f"--prometheus-header{separator}X-Scope-OrgID=one",
        f"--prometheus-header{separator}X-Other=a=b",
        f"--prometheus-verb{separator}GET",
    ]
    flags = [part for flag in given for part in flag.split(" ", 1)]
    line = [*serving_flags(tmp_path, NOWHERE, RULES, {}), *trust.flags(), *flags]
    found = serve_settings(parse_flags(SERVE, line, {})).prometheus
    assert (found.url, found.verb) == ("https://thanos.example/prefix", "GET")
    assert (found.ca_file, found.token_file) == (trust.serving.ca_file, token)
    assert (found.client_cert_file, found.client_key_file) == (pair.certificate_file, pair.key_file)
    assert found.headers == (("X-Scope-OrgID", "one"), ("X-Other", "a=b"))


def described(line: list[str]) -> Access:
    """Return the access that the file of `--prometheus-auth-config` describes."""
    files = serve_settings(parse_flags(SERVE, line, {})).prometheus.access_files
    assert files is not None
    return files.read()


def test_credentials_for_prometheus_may_come_from_a_kubeconfig(tmp_path: Path, trust: Trust) -> None:
    line = [*serving_flags(tmp_path, "https://prometheus.example", RULES, {}), *trust.flags()]
    cluster = FakeApiServer(trust.context())
    kubeconfig = cluster.kubeconfig(tmp_path / "config", ca_file=trust.serving.ca_file)
    line.append(f"--prometheus-auth-config={kubeconfig}")
    found = described(line)
    assert (found.headers, found.ca_file) == ((("Authorization", f"Bearer {TOKEN}"),), trust.serving.ca_file)
    # Without TLS there is nothing to vouch for, and a token file takes the place of the kubeconfig's token.
    line += ["--prometheus-url=http://prometheus.example", "--prometheus-token-file=/token"]
    found = described(line)
    assert (found.headers, found.ca_file, str(found.token_file)) == ((), None, "/token")


def test_credentials_for_prometheus_may_come_from_the_pod(tmp_path: Path, trust: Trust) -> None:
    line = [*serving_flags(tmp_path, "https://prometheus.example", RULES, {}), *trust.flags()]
    found = serve_settings(parse_flags(SERVE, [*line, "--prometheus-auth-incluster"], {})).prometheus
    assert str(found.token_file) == "/var/run/secrets/kubernetes.io/serviceaccount/token"
    assert str(found.ca_file) == "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"


PATHS = [
    flag.name
    for flag in SERVE.flags
    if flag.kind is PATH and flag.name != "config" and not isinstance(flag.state, Refused)
]


@pytest.mark.parametrize("name", PATHS)
def test_an_empty_path_means_no_path_and_not_the_working_directory(name: str) -> None:
    """Charts render an empty text where they have no value."""
    assert parse_flags(SERVE, ["--config=a", f"--{name}="], {}).path(name) is None
    assert parse_flags(SERVE, ["--config=a"], {}).path(name) == SERVE.by_name[name].default
