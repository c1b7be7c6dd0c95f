"""`nodes` takes its settings from flags, and from load-watcher's environment variables for flags that are not given."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adapter.commands.nodes.flags import NODES
from adapter.commands.nodes.load_watcher import with_load_watcher, with_log_level
from adapter.commands.nodes.nodes_settings import nodes_settings
from adapter.commands.nodes.worker import meaning_of
from adapter.foundation.service.flags.help import help_text
from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from adapter.foundation.service.server.addresses import Address
from adapter.foundation.sources.kubernetes.credentials.access import SERVICE_ACCOUNT
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings

if TYPE_CHECKING:
    from adapter.commands.nodes.nodes_settings import NodesSettings

SECRET = "s3cret-token"


def settings(*arguments: str, **environment: str) -> NodesSettings:
    return nodes_settings(parse_flags(NODES, arguments, {}), environment)


def test_the_defaults_are_those_of_load_watcher() -> None:
    found = settings()
    assert found.server.address == Address("0.0.0.0", 2020)
    assert found.server.tls is None
    assert found.server.plain_address is None
    assert found.prometheus.url == "http://prometheus-k8s:9090"
    assert found.objects is None
    assert found.refresh_interval_seconds == 30.0
    assert found.node_metrics == (LoadResource.CPU, LoadResource.MEMORY)
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("environment", "url", "headers"),
    [
        ({"METRICS_PROVIDER_NAME": "Prometheus"}, "http://prometheus-k8s:9090", ()),
        ({"METRICS_PROVIDER_ADDRESS": "http://p:1/x"}, "http://p:1/x", ()),
        (
            {"METRICS_PROVIDER_TOKEN": f"{SECRET}\n"},
            "http://prometheus-k8s:9090",
            (("Authorization", f"Bearer {SECRET}"),),
        ),
        *(({"INSECURE_SKIP_VERIFY": no}, "http://prometheus-k8s:9090", ()) for no in ("false", "1", "t", "yes", "")),
        (
            {"ENABLE_OPENSHIFT_AUTH": "true", "METRICS_PROVIDER_TOKEN": SECRET},
            "http://prometheus-k8s:9090",
            (("Authorization", f"Bearer {SECRET}"),),
        ),
    ],
)
def test_a_load_watcher_variable_replaces_a_flag(
    environment: dict[str, str], url: str, headers: tuple[tuple[str, str], ...]
) -> None:
    found = settings(**environment)
    assert (found.prometheus.url, found.prometheus.headers) == (url, headers)


@pytest.mark.parametrize("value", ["true", "false", "no", ""])
def test_openshift_auth_uses_the_service_account_whatever_its_value(value: str) -> None:
    values = with_load_watcher(parse_flags(NODES, (), {}), {"ENABLE_OPENSHIFT_AUTH": value}).values
    assert values.boolean("prometheus-auth-incluster")


@pytest.mark.parametrize("address", ["https://p:9091", "http://p:9090"])
def test_a_given_token_replaces_that_of_the_service_account_and_its_ca_is_kept(address: str) -> None:
    environment = {
        "ENABLE_OPENSHIFT_AUTH": "true",
        "METRICS_PROVIDER_TOKEN": SECRET,
        "METRICS_PROVIDER_ADDRESS": address,
    }
    found = with_load_watcher(parse_flags(NODES, (), {}), environment)
    assert not found.values.boolean("prometheus-auth-incluster")
    assert found.headers == (("Authorization", f"Bearer {SECRET}"),)
    assert found.values.warnings == ()
    is_https = address.startswith("https")
    assert found.values.path("prometheus-ca-file") == (Path(SERVICE_ACCOUNT, "ca.crt") if is_https else None)


def test_the_kubeconfig_of_load_watcher_names_the_cluster() -> None:
    found = settings(KUBE_CONFIG="/k")
    assert found.objects is not None
    assert found.objects.cluster.kubeconfig == Path("/k")


@pytest.mark.parametrize(
    ("arguments", "environment", "warning"),
    [
        (
            ("--prometheus-url=http://mine",),
            {"METRICS_PROVIDER_ADDRESS": "http://other"},
            "METRICS_PROVIDER_ADDRESS has no effect beside --prometheus-url",
        ),
        (
            ("--prometheus-url=http://mine",),
            {"METRICS_PROVIDER_NAME": "Datadog"},
            "METRICS_PROVIDER_NAME has no effect beside --prometheus-url",
        ),
        (
            ("--prometheus-url=http://mine", "--prometheus-header=Authorization=Basic x"),
            {"METRICS_PROVIDER_TOKEN": SECRET},
            "METRICS_PROVIDER_TOKEN has no effect: other credentials for Prometheus are given",
        ),
        (
            ("--prometheus-url=https://mine", "--prometheus-ca-file=/ca"),
            {"INSECURE_SKIP_VERIFY": "true"},
            "INSECURE_SKIP_VERIFY has no effect beside --prometheus-ca-file: the certificate is verified",
        ),
    ],
)
def test_a_flag_wins_over_its_variable_with_a_warning(
    arguments: tuple[str, ...], environment: dict[str, str], warning: str
) -> None:
    found = settings(*arguments, **environment)
    assert found.prometheus.url.endswith("://mine")
    assert found.warnings == (warning,)


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ((), {"METRICS_PROVIDER_NAME": "SignalFx"}, "METRICS_PROVIDER_NAME is SignalFx, but windows are made from"),
        ((), {"METRICS_PROVIDER_NAME": SECRET}, "METRICS_PROVIDER_NAME is another value, but"),
        *(
            ((), {"INSECURE_SKIP_VERIFY": yes}, "INSECURE_SKIP_VERIFY is true, but certificates are always verified")
            for yes in ("true", "TRUE", "True", "tRuE")
        ),
        (
            (),
            {"METRICS_PROVIDER_TOKEN": "a\nb"},
            "METRICS_PROVIDER_TOKEN holds characters that are not allowed in a header",
        ),
        (
            (),
            {"METRICS_PROVIDER_ADDRESS": "prometheus:9090"},
            "METRICS_PROVIDER_ADDRESS: Prometheus URL has no http://",
        ),
        (
            (),
            {"METRICS_PROVIDER_ADDRESS": f"http://u:{SECRET}@p", "METRICS_PROVIDER_TOKEN": SECRET},
            "Prometheus credentials are given in more than one way",
        ),
        (("--refresh-intervall=1s",), {}, "unknown flag --refresh-intervall: did you mean --refresh-interval?"),
        (("--refresh-interval=500ms",), {}, "--refresh-interval is 0.5 s: write 1 s to 300 s"),
        (("--objects=/missing",), {}, "--objects: /missing is not a folder"),
        (("--state=/tmp",), {}, "--state: /tmp is a folder: name a file in it"),
        (
            ("--token-file=/missing",),
            {},
            "--token-file: /missing cannot be read (No such file or directory): check the path",
        ),
        (("--tls-cert-file=/c",), {}, "--tls-cert-file and --tls-private-key-file belong together"),
        (("--client-ca-file=/c",), {}, "--client-ca-file needs TLS"),
    ],
)
def test_invalid_settings_are_refused_without_showing_a_secret(
    arguments: tuple[str, ...], environment: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        settings(*arguments, **environment)
    assert str(caught.value).startswith(message)
    assert SECRET not in str(caught.value)


def test_matchers_for_every_query_are_read() -> None:
    assert settings().prometheus.matchers is None
    found = settings("""--prometheus-matchers=cluster="eu-1",region=~"a|b\"""").prometheus.matchers
    assert str(found) == 'cluster="eu-1",region=~"a|b"'


@pytest.mark.parametrize("text", ["", "cluster", 'cluster="a"} or up{x="y"'])
def test_matchers_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--prometheus-matchers: matchers .*: write them as between the braces"):
        settings(f"--prometheus-matchers={text}")


def test_the_token_is_not_in_the_text_of_the_settings() -> None:
    environment = {"METRICS_PROVIDER_TOKEN": SECRET}
    assert SECRET not in repr(settings(**environment))
    assert SECRET not in repr(with_load_watcher(parse_flags(NODES, (), {}), environment))


@pytest.mark.parametrize(
    ("arguments", "level", "expected"),
    [
        ((), "", ""),
        ((), "TRACE", "debug"),
        ((), "warn", "warning"),
        ((), "fatal", "error"),
        ((), "loud", "info"),
        (("--log-level=error",), "debug", "error"),
    ],
)
def test_log_levels_of_logrus_are_accepted(arguments: tuple[str, ...], level: str, expected: str) -> None:
    values = with_log_level(parse_flags(NODES, arguments, {}), {"LOG_LEVEL": level})
    assert values.text("log-level") == expected
    assert not expected or hasattr(logging, expected.upper())


def test_the_help_lists_the_default_address_of_prometheus() -> None:
    assert "http://prometheus-k8s:9090" in help_text(NODES)


def test_a_token_without_a_client_ca_warns_that_the_scheduler_paths_stay_open(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(SECRET)
    [warning] = settings(f"--token-file={token}").warnings
    assert "/scheduler answers everybody" in warning
    assert SECRET not in warning


@pytest.mark.parametrize(
    ("url", "flags", "is_same"),
    [
        ("https://other", (), False),
        ("https://mimir?tenant=b", (), False),
        ("https://mimir", ("header=X-Scope-OrgID=b",), False),
        ("https://mimir", ("username=b",), False),
        ("https://mimir", ("token-file=/run/b",), False),
        ("https://mimir", ("client-tls-cert-file=/run/b.crt", "client-tls-key-file=/run/b.key"), False),
        ("https://mimir", ('matchers=cluster="b"',), False),
        ("https://mimir", ("header=Authorization=Bearer b",), True),
        ("https://mimir", ("verb=GET",), True),
    ],
)
def test_the_samples_in_a_state_file_are_those_of_one_prometheus_and_one_tenant(
    url: str, flags: tuple[str, ...], *, is_same: bool
) -> None:
    usual = settings("--prometheus-url=https://mimir")
    changed = settings(f"--prometheus-url={url}", *(f"--prometheus-{flag}" for flag in flags))
    found = meaning_of(changed, SchedulingSettings())
    assert (found == meaning_of(usual, SchedulingSettings())) is is_same
    assert "Bearer" not in found
