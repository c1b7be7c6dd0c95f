from __future__ import annotations

import csv
import io
import json
import math
import shlex
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import yaml

from adapter.foundation.objects.quantities import parse_quantity
from adapter.foundation.objects.resources import Resource
from recommender.commands.main import main
from tests.docs.blocks import blocks_of
from tests.recommender.commands.sized_pods import DAY, MIB, Exposition, SizedPod
from tests.recommender.kinds.resources.reference import end_of_bucket, percentile
from tests.support.checkout import CHECKOUT
from tests.support.fake_apiserver import FakeApiServer
from tests.support.raw_server import answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

    Run: TypeAlias = Callable[..., tuple[int, str, str]]

UNTIL = ("--end", "2026-01-01T00:00:00Z", "--last", "4d")


def season(age: int) -> float:
    return 0.2 + 0.1 * math.sin(2 * math.pi * age / DAY)


def flat(value: float) -> Callable[[int], float]:
    return lambda _age: value


def harness() -> str:
    all_series = Exposition()
    big = {"cpu": 1.0, "memory": 2.0**30}
    for pod in ("web-1-a", "web-1-b"):
        all_series.add_pod(
            SizedPod("shop", pod, ("ReplicaSet", "web-1"), season, flat(300.0 * MIB), requests=big),
            jobs=("kubelet", "kubelet-again"),
        )
    all_series.add_replica_set("shop", "web-1", "web")
    # The pause container, and the sum of the pod.
    for container in ("POD", ""):
        pause = SizedPod("shop", "web-1-a", ("ReplicaSet", "web-1"), flat(7.0), flat(9e9), container=container)
        all_series.add_pod(pause)
    all_series.add_pod(
        SizedPod(
            "shop", "db-0", ("StatefulSet", "db"), flat(0.05), flat(400.0 * MIB),
            requests={"cpu": 0.1, "memory": 512.0 * MIB}, limits={"cpu": 1.0, "memory": 2.0**30}, killed_at=DAY // 2,
        )
    )  # fmt: skip
    all_series.add_pod(
        SizedPod("shop", "api-1-a", ("ReplicaSet", "api-1"), flat(0.3), flat(100.0 * MIB), requests=big, resets_at=DAY)
    )
    all_series.add_replica_set("shop", "api-1", "api")
    hpa = {"namespace": "shop", "horizontalpodautoscaler": "api-hpa"}
    target = {"scaletargetref_kind": "Deployment", "scaletargetref_name": "api"}
    all_series.add_object("kube_horizontalpodautoscaler_info", hpa | target)
    all_series.add_object("kube_horizontalpodautoscaler_spec_target_metric", hpa | {"metric_name": "cpu"})
    all_series.add_pod(SizedPod("lab", "young", ("<none>", "<none>"), flat(0.1), flat(1.0 * MIB), seconds=1800))
    all_series.add_pod(
        SizedPod(
            "lab", "odd-0", ("StatefulSet", "odd"), flat(0.4),
            lambda age: math.nan if age % 600 else 50.0 * MIB, requests={"cpu": 0.1}, limits={"cpu": 0.15},
        )
    )  # fmt: skip
    return all_series.text()


@pytest.fixture(scope="module")
def url(start_prometheus: Callable[..., ScrapedPrometheus]) -> str:
    return start_prometheus(history=harness()).url


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def answered(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["sizes", *arguments])
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return answered


@pytest.fixture
def items(url: str, run: Run) -> dict[str, dict[str, Any]]:
    status, out, err = run("--prometheus-url", url, *UNTIL, "-o", "json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert document["kind"] == "SizeList"
    return {f"{each['namespace']}/{each['name']}": each for each in document["items"]}


def test_sizes_are_percentiles_of_an_explicitly_computed_histogram(items: dict[str, dict[str, Any]]) -> None:
    # Rates are means of five minutes; pods, jobs of kubelets and pause containers change nothing.
    samples = [(season(age), float(age)) for age in range(0, 4 * DAY, 300)]
    target = 1.15 * percentile(samples, 0.9, 0.01)
    cpu = items["shop/web"]["cpu"]
    assert cpu["target_milli"] == math.ceil(target * 1000)
    assert cpu["saves_milli"] == 2 * (1000 - cpu["target_milli"])
    assert cpu["upper_milli"] == pytest.approx(1.25 * 1000 * 1.15 * percentile(samples, 0.95, 0.01), abs=2)
    memory = items["shop/web"]["memory"]
    assert memory["target_bytes"] == math.ceil(1.15 * end_of_bucket(300 * MIB, 1e7) / MIB) * MIB
    assert (items["shop/web"]["kind"], items["shop/web"]["replicas"]) == ("Deployment", 2)


def test_the_largest_savings_are_first_and_workloads_without_a_size_last(items: dict[str, dict[str, Any]]) -> None:
    assert list(items) == ["shop/web", "shop/db", "lab/odd", "lab/young", "shop/api"]


def test_counter_resets_and_missing_values_do_not_raise_sizes(items: dict[str, dict[str, Any]]) -> None:
    assert items["shop/api"]["cpu"]["target_milli"] == math.ceil(1150 * end_of_bucket(0.3, 0.01))
    assert items["lab/odd"]["memory"]["target_bytes"] == 250 * MIB
    assert items["lab/odd"]["cpu"]["saves_milli"] < 0


def test_a_limit_below_the_request_keeps_its_ratio_to_the_request(items: dict[str, dict[str, Any]]) -> None:
    cpu = items["lab/odd"]["cpu"]
    assert cpu["target_milli"] > 150
    assert cpu["recommended_limit_milli"] == math.ceil(1.5 * cpu["target_milli"])


def test_a_kill_raises_memory_and_its_limit_at_once(items: dict[str, dict[str, Any]]) -> None:
    database = items["shop/db"]
    assert database["oom_kills"] == 1
    assert database["memory"]["target_bytes"] >= 1.15 * 1.2 * 512 * MIB
    assert database["memory"]["recommended_limit_bytes"] == math.ceil(1.2 * 1024) * MIB
    assert database["cpu"]["recommended_limit_milli"] is None
    assert "out of memory" in database["message"]


def test_requests_stay_where_an_autoscaler_follows_them(items: dict[str, dict[str, Any]], url: str, run: Run) -> None:
    assert items["shop/api"]["status"] == "held"
    assert "api-hpa" in items["shop/api"]["message"]
    assert items["shop/api"]["cpu"]["saves_milli"] is None
    _, out, _ = run("--prometheus-url", url, *UNTIL, "--also-with-hpa", "--workload", "shop/api", "-o", "json")
    (item,) = json.loads(out)["items"]
    assert (item["status"], item["message"]) == ("ok", "")
    assert item["cpu"]["saves_milli"] == 1000 - item["cpu"]["target_milli"]


def test_less_than_an_hour_of_history_gives_no_size_and_a_reason(items: dict[str, dict[str, Any]]) -> None:
    young = items["lab/young"]
    assert (young["status"], young["cpu"], young["memory"]) == ("error", None, None)
    assert "at least an hour" in young["message"]


def test_every_output_format_has_the_same_values(items: dict[str, dict[str, Any]], url: str, run: Run) -> None:
    flags = ("--prometheus-url", url, *UNTIL)
    rows = list(csv.DictReader(io.StringIO(run(*flags, "-o", "csv")[1])))
    assert [row["cpu_target_milli"] for row in rows] == [
        str(item["cpu"]["target_milli"]) if item["cpu"] else "" for item in items.values()
    ]
    assert yaml.safe_load(run(*flags, "-o", "yaml")[1])["items"] == list(items.values())
    table = run(*flags)[1].splitlines()
    assert max(map(len, table[2:11])) <= 80
    assert table[2].split() == ["WORKLOAD", "CONTAINER", "NOW", "RECOMMENDED", "SAVES", "SURE"]
    assert table[3].split()[:4] == ["shop/deployment/web", "app", "cpu", "1"]


def test_each_patch_is_a_valid_kubectl_command(items: dict[str, dict[str, Any]], url: str, run: Run) -> None:
    lines = run("--prometheus-url", url, *UNTIL, "-o", "patch")[1].splitlines()
    commands = {words[2]: words for line in lines if (words := shlex.split(line, comments=True))}
    assert list(commands) == ["deployment.apps/web", "statefulset.apps/db", "statefulset.apps/odd"]
    for name, words in commands.items():
        kubectl, verb, _, namespace, kind, patch = words
        assert (kubectl, verb, kind) == ("kubectl", "patch", "--type=strategic")
        item = items[f"{namespace.removeprefix('--namespace=')}/{name.partition('/')[2]}"]
        spec = json.loads(patch.removeprefix("--patch="))["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        stated = container["resources"]
        amounts = {resource: parse_quantity(amount) for resource, amount in stated["requests"].items()}
        assert amounts["cpu"].milli_value() == item["cpu"]["target_milli"]
        assert amounts["memory"].milli_value() == 1000 * item["memory"]["target_bytes"]
        for resource, limit in stated.get("limits", {}).items():
            assert parse_quantity(limit).milli_value() >= amounts[resource].milli_value()
    assert any(line.startswith("# shop/deployment/api app: requests stay") for line in lines)


def test_namespace_and_workload_flags_select_what_is_read(url: str, run: Run, tmp_path: Path) -> None:
    flags = ("--prometheus-url", url, *UNTIL, "-o", "json")
    assert {item["namespace"] for item in json.loads(run(*flags, "--namespace", "lab")[1])["items"]} == {"lab"}
    picture = tmp_path / "web.png"
    status, out, _ = run(*flags, "--workload", "shop/web", "--plot", str(picture))
    assert (status, [item["name"] for item in json.loads(out)["items"]]) == (0, ["web"])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_other_percentiles_and_margins_change_the_target(url: str, run: Run) -> None:
    def target(*flags: str) -> int:
        out = run("--prometheus-url", url, *UNTIL, "--workload", "shop/web", "-o", "json", *flags)[1]
        return int(json.loads(out)["items"][0]["cpu"]["target_milli"])

    assert target("--percentile", "50", "--margin", "0%") < target("--percentile", "90", "--margin", "0%")
    assert target("--margin", "30%") > target()
    assert target("--percentile", "auto") < target("--percentile", "auto", "--margin", "50%")


def test_without_kube_state_metrics_each_pod_is_listed_by_itself(
    start_prometheus: Callable[..., ScrapedPrometheus], run: Run
) -> None:
    usage = Exposition()
    usage.add_pod(SizedPod("shop", "web-1-a", ("", ""), flat(0.1), flat(1.0 * MIB), seconds=7200))
    text = "".join(part for part in usage.text().splitlines(keepends=True) if "kube_" not in part)
    status, out, _ = run("--prometheus-url", start_prometheus(history=text).url, *UNTIL, "-o", "json")
    document = json.loads(out)
    assert status == 0
    assert [(each["kind"], each["name"]) for each in document["items"]] == [("Pod", "web-1-a")]
    assert document["items"][0]["cpu"]["saves_milli"] is None
    assert [text.split()[0] for text in document["missing"]] == [
        "kube_pod_owner", "kube_pod_container_resource_requests",
    ]  # fmt: skip


def test_pods_of_several_clusters_are_never_mixed(start_prometheus: Callable[..., ScrapedPrometheus], run: Run) -> None:
    both = Exposition()
    for cluster, cores in (("eu", 0.1), ("us", 0.9)):
        labels = {"cluster": cluster}
        both.add_pod(
            SizedPod("shop", "db-0", ("StatefulSet", "db"), flat(cores), flat(1.0 * MIB), seconds=7200, labels=labels)
        )
    url = start_prometheus(history=both.text()).url
    status, out, err = run("--prometheus-url", url, *UNTIL)
    assert (status, out) == (2, "")
    assert "cluster: eu, us" in err
    status, out, _ = run("--prometheus-url", url, *UNTIL, "-o", "json", "--prometheus-matchers", 'cluster="eu"')
    assert json.loads(out)["items"][0]["cpu"]["target_milli"] == math.ceil(1150 * end_of_bucket(0.1, 0.01))


@pytest.fixture
def apiserver() -> Iterator[FakeApiServer]:
    with FakeApiServer() as server:
        yield server


def serve_vertical(server: FakeApiServer, name: str) -> None:
    kind = Resource("autoscaling.k8s.io", "v1", "verticalpodautoscalers", "", "VerticalPodAutoscaler", namespaced=True)
    server.resources.append(kind)
    spec = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}
    server.store.put(kind, "shop", "v", {}, {"spec": spec})


def test_with_a_kubeconfig_workloads_that_a_vertical_pod_autoscaler_sizes_are_named(
    url: str, run: Run, apiserver: FakeApiServer, tmp_path: Path
) -> None:
    serve_vertical(apiserver, "web")
    config = ("--kubeconfig", str(apiserver.kubeconfig(tmp_path / "config")))
    status, out, _ = run("--prometheus-url", url, *UNTIL, *config, "--namespace", "shop", "-o", "json")
    messages = {each["name"]: each["message"] for each in json.loads(out)["items"]}
    note = "VerticalPodAutoscaler shop/v sizes it too (updateMode Auto): set that to Off, or follow only one of them"
    assert (status, messages["web"]) == (0, note)
    assert "VerticalPodAutoscaler" not in messages["db"]
    patch = run("--prometheus-url", url, *UNTIL, *config, "-o", "patch")[1]
    assert f"# shop/deployment/web app: {note}" in patch


@pytest.mark.parametrize("is_served", [True, False])
def test_forbidden_vertical_pod_autoscalers_are_reported_once_and_missing_ones_are_ignored(
    url: str, run: Run, apiserver: FakeApiServer, tmp_path: Path, *, is_served: bool
) -> None:
    if is_served:
        serve_vertical(apiserver, "web")
        apiserver.forbid("list", "verticalpodautoscalers")
    config = ("--kubeconfig", str(apiserver.kubeconfig(tmp_path / "config")))
    status, out, err = run("--prometheus-url", url, *UNTIL, *config, "-o", "json")
    assert (status, err) == (0, "")
    assert out.count("VerticalPodAutoscalers may not be listed") == int(is_served)


def test_a_cluster_that_cannot_be_reached_ends_with_2(url: str, run: Run, tmp_path: Path) -> None:
    with FakeApiServer() as server:
        config = server.kubeconfig(tmp_path / "config")
    status, out, err = run("--prometheus-url", url, *UNTIL, "--kubeconfig", str(config))
    assert (status, out) == (2, "")
    assert "--kubeconfig: VerticalPodAutoscalers cannot be listed" in err


def test_implausible_memory_is_ignored_and_other_samples_of_its_day_count(
    start_prometheus: Callable[..., ScrapedPrometheus], run: Run
) -> None:
    def memory(wrong: float, usual: float) -> Callable[[int], float]:
        return lambda age: wrong if age == 7200 else usual * MIB

    pods = {
        "huge": memory(1e18, 400.0),
        "infinite": memory(math.inf, 400.0),
        "usual": memory(400.0 * MIB, 400.0),
        "never": flat(1e18),
        "below": flat(-1.0),
    }
    all_series = Exposition()
    for name, used in pods.items():
        all_series.add_pod(SizedPod("shop", f"{name}-0", ("StatefulSet", name), flat(0.1), used, seconds=DAY))
    out = run("--prometheus-url", start_prometheus(history=all_series.text()).url, *UNTIL, "-o", "json")[1]
    sizes = {each["name"]: each["memory"] and each["memory"]["target_bytes"] for each in json.loads(out)["items"]}
    expected = math.ceil(1.15 * end_of_bucket(400 * MIB, 1e7) / MIB) * MIB
    assert sizes == {"huge": expected, "infinite": expected, "usual": expected, "never": None, "below": None}


def test_a_namespace_without_containers_ends_with_1(url: str, run: Run) -> None:
    status, out, _ = run("--prometheus-url", url, *UNTIL, "--namespace", "nobody")
    assert status == 1
    assert out.startswith("No container has usage in the ")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ((), "--prometheus-url is missing"),
        (("--prometheus-url", "http://127.0.0.1:1"), "--prometheus-url: no connection to http://127.0.0.1:1"),
        (("--prometheus-url", "http://127.0.0.1:1", "--last", "5m"), "between 1h and 90d"),
        (("--prometheus-url", "http://127.0.0.1:1", "--percentile", "0"), "write auto, or a number"),
        (("--prometheus-url", "http://127.0.0.1:1", "--margin", "0.15"), "such as 15%"),
        (("--prometheus-url", "http://127.0.0.1:1", "--workload", "web"), "shop/web"),
        (("--prometheus-url", "http://127.0.0.1:1", "--workload", ""), "--workload: '' is not NAMESPACE/NAME"),
        (("--prometheus-url", "http://127.0.0.1:1", "--plot", "x.png"), "--plot needs --workload"),
        (
            ("--prometheus-url", "http://127.0.0.1:1", "--workload", "a/b", "--plot", "web"),
            "must end with .png or .svg",
        ),
        (("--prometheus-url", "http://127.0.0.1:1", "--namespace", 'a"}'), "not the name of a namespace"),
        (("--prometheus-url", "http://127.0.0.1:1", "--end", "soon"), "--end"),
    ],
)
def test_wrong_usage_and_an_unreadable_prometheus_end_with_2(run: Run, flags: tuple[str, ...], problem: str) -> None:
    status, out, err = run(*flags)
    assert (status, out) == (2, "")
    assert problem in err


def test_nothing_is_sized_if_every_query_is_answered_with_a_number(run: Run) -> None:
    number = b'{"status":"success","data":{"resultType":"scalar","result":[60,"5"]}}'
    with raw_server(answering(number)) as server:
        status, out, err = run("--prometheus-url", server.url, *UNTIL, "-o", "json")
    assert (status, json.loads(out)["items"], err) == (1, [], "")


BACKTEST = ("--backtest", *UNTIL)


def test_a_backtest_judges_requests_on_the_history(run: Run, url: str) -> None:
    status, out, err = run("--prometheus-url", url, *BACKTEST, "-o", "json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert (document["kind"], document["window"]["last_seconds"]) == ("SizeBacktest", 4 * DAY)
    items = {item["name"]: item for item in document["items"]}
    web = items["web"]
    assert (web["status"], web["days"], web["history_days"]) == ("ok", 1, 4)
    assert set(web["cpu"]) == set(web["memory"]) == {"now", "sizes", "vpa", "krr"}
    assert web["cpu"]["now"] == pytest.approx(
        {"over_ratio": 0.0, "reserved": 1.0, "used": 0.2, "reserved_per_used": 5.0, "days_over": 0}
        | {"oom_kills_avoided": None},
        abs=0.02,
    )
    # The same rule with the same settings; and a season has its same peak each day.
    assert web["cpu"]["sizes"] == web["cpu"]["vpa"]
    assert web["cpu"]["krr"]["over_ratio"] == pytest.approx(0.05, abs=0.02)
    assert items["db"]["oom_kills"] == 1
    assert items["young"]["message"].startswith("not judged: 1 days of its usage are known")
    assert document["totals"]["cpu"]["now"]["containers"] == document["totals"]["cpu"]["krr"]["containers"]


def test_the_table_of_a_backtest_names_histories_that_are_too_short(run: Run, url: str) -> None:
    status, out, _ = run("--prometheus-url", url, *BACKTEST)
    assert status == 0
    assert "containers judged on days of the 4 days until 2026-01-01T00:00:00Z" in out
    assert "lab/pod/young app: not judged" in out
    assert "krr looks at 14 days of history, and had 3 days before the days that were judged" in out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("-o", "patch"), "--backtest has no output patch"),
        (("--also-with-hpa",), "--also-with-hpa has no effect with --backtest"),
        (("--last", "3d"), "--last is too short for --backtest: write 4d or more"),
    ],
)
def test_flags_that_a_backtest_cannot_use_are_refused(run: Run, flags: tuple[str, ...], message: str) -> None:
    status, out, err = run("--prometheus-url", "http://127.0.0.1:9", "--backtest", *flags)
    assert (status, out) == (2, "")
    assert message in err


def test_the_documentation_shows_this_table(url: str, run: Run) -> None:
    (shown,) = (block.text for block in blocks_of(CHECKOUT / "docs/sizes.md") if "containers sized from" in block.text)
    assert run("--prometheus-url", url, *UNTIL)[1] == shown
