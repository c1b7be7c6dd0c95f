"""Objects from files, which others change while the program runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from demo.machine.files import replace_file
from tests.adapter.commands.harness import RULES
from tests.support.forked import run
from tests.support.serving import Adapter, Trust, eventually, listed, pod, running_adapter, serving_flags

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Caller

FIRST = {"web.json": listed(pod("web-0", app="web"))}


def names(caller: Caller) -> set[str]:
    answer = caller.pods("open_connections", labelSelector="app=web")
    return set(answer.values) if answer.status == 200 else set()


def test_changed_files_are_reloaded_and_broken_ones_keep_their_last_good_content(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    objects = tmp_path / "objects"

    def complaints(adapter: Adapter, name: str) -> list[str]:
        return adapter.said(rf" ERROR .*objects/{name}: ")

    with (
        running_adapter(tmp_path, trust, prometheus_url=prometheus.url, rules=RULES, objects=FIRST) as adapter,
        adapter.caller() as caller,
    ):
        assert names(caller) == {"web-0"}
        # A pod more, in a file of its own, in YAML.
        replace_file(
            objects / "more.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web-1, namespace: shop, labels: {app: web}}\n",
        )
        eventually(lambda: names(caller) == {"web-0", "web-1"})
        # Broken: what was known stays, and it is said once.
        replace_file(objects / "web.json", '{"kind": "List", "items": [')
        eventually(lambda: complaints(adapter, "web.json"))
        replace_file(objects / "more.yaml", json.dumps(pod("web-2", app="web")))
        eventually(lambda: names(caller) == {"web-0", "web-2"})
        assert len(complaints(adapter, "web.json")) == 1
        # Repaired: renamed away, and with another label.
        replace_file(objects / "web.json", json.dumps(listed(pod("web-0", app="db"), pod("web-1", app="web"))))
        eventually(lambda: names(caller) == {"web-1", "web-2"})
        (objects / "more.yaml").unlink()
        eventually(lambda: names(caller) == {"web-1"})
        assert not complaints(adapter, "more.yaml")


def test_a_folder_that_is_not_there_is_wrong_usage(tmp_path: Path, trust: Trust, prometheus: PrometheusProcess) -> None:
    flags = serving_flags(tmp_path, prometheus.url, RULES, {})
    ended = run("serve", *flags, *trust.flags(), f"--objects={tmp_path / 'nowhere'}")
    assert (ended.code, ended.out) == (2, "")
    assert ended.error == (
        f"tidewatch-adapter: --objects: {tmp_path / 'nowhere'} is not a folder: "
        "name one with the objects' *.json and *.yaml files\n"
    )
