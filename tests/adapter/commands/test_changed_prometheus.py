"""A running `serve` whose Prometheus has a wrong clock for a time, or other credentials than before."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.adapter.commands.harness import SHOP
from tests.support.recording_proxy import recording_proxy
from tests.support.rotation import BROKEN, Rotation
from tests.support.serving import Adapter, Trust, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Caller

WEB = {"labelSelector": "app=web"}
REFRESHED = ("--max-answer-age=3s", "--refresh-interval=1s")


def status(caller: Caller) -> int:
    return caller.pods("open_connections", **WEB).status


def test_values_are_refused_while_the_clock_of_prometheus_is_wrong_and_served_afterwards(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    with (
        recording_proxy(prometheus.url) as proxy,
        SHOP.adapter(tmp_path, trust, prometheus, f"--prometheus-url={proxy.url}", *REFRESHED) as adapter,
        adapter.caller() as caller,
    ):
        eventually(lambda: status(caller) == 200)
        for seconds, problem in ((3600.0, "behind Prometheus's"), (-3600.0, "ahead of Prometheus's")):
            proxy.seconds_ahead = seconds
            eventually(lambda: status(caller) == 503)
            assert problem in caller.pods("open_connections", **WEB).message
            proxy.seconds_ahead = 0.0
            eventually(lambda: status(caller) == 200)


def test_values_are_refused_if_prometheus_is_an_hour_ahead_behind_a_gateway_with_the_right_time(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    with recording_proxy(prometheus.url) as proxy:
        proxy.server_seconds_ahead = 3600.0
        flags = (f"--prometheus-url={proxy.url}", *REFRESHED)
        with SHOP.adapter(tmp_path, trust, prometheus, *flags) as adapter, adapter.caller() as caller:
            eventually(lambda: "behind Prometheus's" in caller.pods("open_connections", **WEB).message)
            assert status(caller) == 503
            proxy.server_seconds_ahead = 0.0
            eventually(lambda: status(caller) == 200)


def refused_so_often(adapter: Adapter, number: int) -> bool:
    return len(adapter.said("cannot be used; the last good version stays in use")) == number


def test_the_last_good_token_is_sent_until_a_new_good_one_and_tokens_are_never_shown(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    rotation = Rotation(tmp_path / "volume")
    rotation.write("the-first-secret")
    name = f"Prometheus token file ({rotation.token})"

    def refused(adapter: Adapter) -> float:
        return adapter.metric("tidewatch_credentials_refused", credentials=name)

    with recording_proxy(prometheus.url) as proxy:
        proxy.authorization = "Bearer the-first-secret"
        flags = (f"--prometheus-url={proxy.url}", f"--prometheus-token-file={rotation.token}", *REFRESHED)
        with SHOP.adapter(tmp_path, trust, prometheus, *flags) as adapter, adapter.caller() as caller:
            eventually(lambda: status(caller) == 200)
            for number, prepare in enumerate(BROKEN, start=1):
                rotation.swap(prepare)
                eventually(partial(refused_so_often, adapter, number))
                # Not at once: on a busy machine the last answer may be older than is allowed.
                asked = len(proxy.requests)
                eventually(lambda asked=asked: len(proxy.requests) > asked and status(caller) == 200)  # type: ignore[misc]  # bound in the loop
            assert proxy.refusals == 0
            assert refused(adapter) == 1.0
            rotation.write("the-second-secret")
            proxy.authorization = "Bearer the-second-secret"
            eventually(lambda: refused(adapter) == 0.0)
            eventually(lambda: status(caller) == 200)
            rotation.write("a-revoked-secret")
            eventually(lambda: status(caller) == 503)
            assert "secret" not in caller.pods("open_connections", **WEB).text
            rotation.write("the-second-secret")
            eventually(lambda: status(caller) == 200)
            assert refused_so_often(adapter, len(BROKEN))
            assert "secret" not in adapter.log
