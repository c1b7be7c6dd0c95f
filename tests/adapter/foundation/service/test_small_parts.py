"""Addresses, the phases of the end, health texts and TLS names: pure parts of the service."""

from __future__ import annotations

import math
import socket
from contextlib import closing

import pytest

from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.runtime.health import Health, HealthCheck, render_health
from adapter.foundation.service.server.addresses import Address, address_of, listening_socket, overlap, parse_address
from adapter.foundation.service.server.arbiter import LONGEST_RESTART_WAIT, restart_wait
from adapter.foundation.service.server.process import connections_within
from adapter.foundation.service.server.server_settings import ConnectionLimits
from adapter.foundation.service.server.shutdown_phases import Ending, Phase
from adapter.foundation.service.server.tls import WEAK_SUITES, ChosenSuites, chosen_suites
from adapter.foundation.time.backoff import Backoff

WELL = HealthCheck("ping", lambda: None)
ILL = HealthCheck("pods", lambda: "not synced")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":9180", Address("", 9180)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("localhost:80", Address("localhost", 80)),
        ("[::1]:443", Address("::1", 443)),
    ],
)
def test_addresses_are_read_and_written(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "9180", "a:b", "a:-1", "a:65536", "::1:443", "a:"])
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        parse_address(text)


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        (":9180", ":9180", True),
        ("127.0.0.1:9180", "127.0.0.1:9180", True),
        ("127.0.0.1:9180", "0.0.0.0:9180", True),
        ("[::]:9180", "127.0.0.1:9180", True),
        (":9180", ":9181", False),
        ("127.0.0.1:9180", "127.0.0.2:9180", False),
        (":0", ":0", False),
    ],
)
def test_overlapping_addresses_are_recognised(one: str, other: str, *, is_shared: bool) -> None:
    assert overlap(parse_address(one), parse_address(other)) is is_shared


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::"])
def test_a_wildcard_listens_on_both_families(host: str) -> None:
    with closing(listening_socket(Address(host, 0))) as listener:
        port = address_of(listener).port
        for target in ("127.0.0.1", "::1") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
            with closing(socket.create_connection((target, port), timeout=5)):
                pass


def test_a_host_name_is_looked_up() -> None:
    with closing(listening_socket(Address("localhost", 0))) as listener:
        assert address_of(listener).port > 0


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_refused_with_advice(host: str) -> None:
    with pytest.raises(StartError, match="this machine does not have the address"):
        listening_socket(Address(host, 0))


def phases(ending: Ending, *times: float) -> list[Phase]:
    return [ending.phase(time) for time in times]


def test_shutdown_is_delayed_then_drains_then_ends() -> None:
    ending = Ending(delay_seconds=5, drain_seconds=3)
    assert phases(ending, 0, 1e9) == [Phase.SERVING] * 2
    ending.begin(100)
    ending.begin(104)
    expected = [Phase.DELAYING, Phase.DELAYING, Phase.DRAINING, Phase.DRAINING, Phase.OVER]
    assert phases(ending, 100, 104.9, 105, 107.9, 108) == expected


def test_the_seconds_to_the_next_phase_are_known() -> None:
    ending = Ending(delay_seconds=5, drain_seconds=3)
    assert ending.next_phase(99) == math.inf
    ending.begin(100)
    assert [ending.next_phase(time) for time in (100, 104.5, 105, 107.5, 109)] == [5, 0.5, 3, 0.5, 0]


def test_each_hurry_skips_one_phase() -> None:
    ending = Ending(delay_seconds=5, drain_seconds=3)
    ending.begin(100)
    ending.hurry(101)
    assert phases(ending, 101, 103.9, 104) == [Phase.DRAINING, Phase.DRAINING, Phase.OVER]
    ending.hurry(102)
    assert phases(ending, 102) == [Phase.OVER]


def test_a_hurry_at_the_start_skips_the_delay() -> None:
    ending = Ending(delay_seconds=5, drain_seconds=3)
    ending.hurry(100)
    assert phases(ending, 100, 103) == [Phase.DRAINING, Phase.OVER]


@pytest.mark.parametrize(
    ("path", "query", "status", "text"),
    [
        ("/livez", "", 500, "[+]ping ok\n[-]pods failed: not synced\nlivez check failed\n"),
        ("/readyz", "exclude=pods", 200, "ok"),
        ("/readyz", "verbose&exclude=pods", 200, "[+]ping ok\n[+]pods excluded: ok\nreadyz check passed\n"),
        ("/readyz/ping", "", 200, "ok"),
        ("/readyz/pods", "", 500, "internal server error: not synced\n"),
        ("/readyz/other", "", 404, "no health check is named 'other'; there are ping, pods\n"),
        (
            "/livez",
            "verbose=1&exclude=pods&exclude=x",
            200,
            (
                '[+]ping ok\n[+]pods excluded: ok\nwarn: some health checks cannot be excluded: no matches for "x"\n'
                "livez check passed\n"
            ),
        ),
    ],
)
def test_health_answers_read_like_those_of_kube_apiserver(path: str, query: str, status: int, text: str) -> None:
    assert render_health([WELL, ILL], path, query) == (status, text)


def test_readiness_includes_the_liveness_checks() -> None:
    health = Health()
    health.add_ready("loop", lambda: "stuck")
    health.add_ready("pods", lambda: None)
    assert health.answer("/readyz", "") == (500, "[+]ping ok\n[-]loop failed: stuck\n[+]pods ok\nreadyz check failed\n")
    assert health.answer("/livez", "") == (200, "ok")
    assert health.answer("/healthz/pods", "") == (200, "ok")
    assert health.answer("/metrics", "") is None


def test_a_process_is_ready_once_lists_have_been_tried_or_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    health, tried = Health(), list[bool]()
    health.add_first_lists(lambda: bool(tried))
    assert health.answer("/readyz/objects", "") == (
        500,
        "internal server error: the first lists of objects have not arrived yet\n",
    )
    assert health.answer("/livez", "") == (200, "ok")
    tried.append(True)
    assert health.answer("/readyz", "") == (200, "ok")

    monkeypatch.setattr("adapter.foundation.service.runtime.health.READY_WITHOUT_LISTS_SECONDS", 0.0)
    slow = Health()
    slow.add_first_lists(lambda: False)
    assert slow.answer("/readyz", "") == (200, "ok")


def test_a_worker_that_dies_early_is_restarted_with_growing_delays() -> None:
    restarts = Backoff(1.0, LONGEST_RESTART_WAIT, jitter_ratio=0.0)
    waits = [restart_wait(restarts, lived_seconds=1) for _ in range(8)]
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]
    assert restart_wait(restarts, lived_seconds=3600) == 0
    assert restart_wait(restarts, lived_seconds=1) == 1


def test_cipher_suites_have_the_names_that_go_uses() -> None:
    names = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_256_GCM_SHA384")
    assert chosen_suites(names).offered == ("ECDHE-RSA-AES128-GCM-SHA256", "AES256-GCM-SHA384")


@pytest.mark.parametrize("name", sorted(WEAK_SUITES))
def test_weak_suites_are_left_out(name: str) -> None:
    assert chosen_suites((name, "TLS_RSA_WITH_AES_256_GCM_SHA384")) == ChosenSuites(("AES256-GCM-SHA384",), (name,))


def test_a_suite_that_go_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="AES128-SHA is not a cipher suite: known are TLS_"):
        chosen_suites(("AES128-SHA",))


@pytest.mark.parametrize(
    ("descriptors", "most", "unfinished"),
    [(1_000_000, 4000, 1000), (4256, 4000, 1000), (2256, 2000, 1000), (1024, 768, 384), (300, 150, 75), (64, 32, 16)],
)
def test_connection_limits_leave_descriptors_for_other_uses(descriptors: int, most: int, unfinished: int) -> None:
    assert connections_within(ConnectionLimits(most_requests=7), descriptors) == ConnectionLimits(
        most=most, most_unfinished=unfinished, most_requests=7
    )
