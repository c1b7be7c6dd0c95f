from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

import pytest

from benchmarks.aggregator_client import Endpoint
from benchmarks.slow_clients import SlowClients, SlowClientsPlan
from benchmarks.slow_readers import Company, Settings, companies, main
from tests.adapter.foundation.service.servers import make_certificates, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.adapter.foundation.service.servers import Server

COUNT = 6
DEADLINES = {"pace": 0.2}


@pytest.fixture(scope="module", name="server")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("clients")
    with running_server(folder, make_certificates(folder), deadlines=DEADLINES) as server:
        yield server


@pytest.mark.parametrize("kind", ["readers", "heads"])
def test_all_clients_connect_are_cut_off_and_connect_again(
    tmp_path: Path, server: Server, kind: Literal["readers", "heads"]
) -> None:
    certificates = server.certificates
    plan = SlowClientsPlan(
        endpoint=Endpoint(
            port=server.port,
            ca_file=str(certificates.server.ca_file),
            certificate_file=str(certificates.client.certificate_file),
            key_file=str(certificates.client.key_file),
        ),
        kind=kind,
        count=COUNT,
        path="/pattern?bytes=400000",
        segment_bytes=536,
        receive_bytes=2048,
        # Longer than the server's deadline on a busy machine, so that it is the server that ends connections.
        again_seconds=2.0,
        end_at=time.monotonic() + 60.0,
        result_file=str(tmp_path / "outcome.json"),
    )
    outcome = SlowClients(plan).run(lambda found: found.cut_off > 0 and found.connections > COUNT)
    assert outcome.cut_off > 0
    assert outcome.connections > COUNT
    assert outcome.most_at_once > 0


def test_the_loads_run_alone_then_beside_slow_readers_then_beside_unknown_clients() -> None:
    settings = Settings((82_000,), readers=300, heads=1000, seconds=1.0, rate=20.0)
    assert companies(settings) == [
        Company("alone"),
        Company("readers, segments of 1400", "readers", 300, 1400),
        Company("readers, segments of 536", "readers", 300, 536),
        Company("unfinished heads", "heads", 1000),
    ]


@pytest.mark.parametrize("arguments", [["--readers", "0"], ["--list-bytes", "1"], ["--seconds", "x"], ["-o", "xml"]])
def test_wrong_usage_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
