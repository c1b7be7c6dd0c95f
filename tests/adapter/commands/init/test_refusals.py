"""`tidewatch-adapter init` says how to repair what it refuses, replaces no file, and writes no file in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.files.new_files import NewFilesError, write_new_files
from tests.support.forked import run
from tests.support.prometheus import scraped_prometheus
from tests.support.raw_server import answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

EVIL = rb"evil\u001b]0;owned\u0007".decode("unicode_escape")
FILES = {"rules.yaml": "new rules", "hpa-web.yaml": "new example"}


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScrapedPrometheus]:
    """Yield a Prometheus with hostile labels, and with series that have too few labels."""
    text = (
        f'rabbitmq_queue_messages{{queue="{EVIL}",vhost="/"}} 3\n'
        'websocket_connections{namespace="shop",pod="../../x-0"} 4\n'
        'websocket_connections{namespace="shop",pod="chat-0"} 9\n'
        "celery_queue_length 5\n"
        "up_to_you 1\n"
    )
    with scraped_prometheus(tmp_path_factory.mktemp("prometheus"), text, stamped=True) as running:
        # Queries are evaluated at the last whole second, so the series must be older than that.
        running.wait_for("up_to_you offset 1s")
        yield running


def test_hostile_labels_put_no_control_characters_into_output_and_files(
    hostile: ScrapedPrometheus, tmp_path: Path
) -> None:
    ended = run("init", f"--prometheus-url={hostile.url}", f"--out={tmp_path}")

    assert (ended.code, ended.error) == (0, "")
    written = contents(tmp_path)
    assert list(written) == ["hpa-chat.yaml", "rules.yaml"]
    assert all(text.replace("\n", "").isprintable() for text in (ended.out, *written.values()))
    assert "A selector of Kubernetes cannot contain queue=" in written["rules.yaml"]
    assert "kind: StatefulSet" in written["hpa-chat.yaml"]


def test_a_metric_that_cannot_be_served_is_a_comment_with_the_repair(
    hostile: ScrapedPrometheus, tmp_path: Path
) -> None:
    run("init", f"--prometheus-url={hostile.url}", f"--out={tmp_path}")

    _, _, comments = (tmp_path / "rules.yaml").read_text().partition("# Found, but not served:\n")
    assert "celery_queue_length" in comments
    assert "no label `queue_name` or `queue`" in " ".join(comments.replace("#", "").split())


@pytest.mark.parametrize("name", ["rules.yaml", "hpa-chat.yaml"])
def test_an_existing_file_is_named_and_nothing_is_written(
    hostile: ScrapedPrometheus, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("mine")
    ended = run("init", f"--prometheus-url={hostile.url}", f"--out={tmp_path}")

    assert (ended.code, ended.out) == (2, "")
    assert ended.error == (
        f"tidewatch-adapter: {tmp_path / name} exists and is not overwritten: "
        "move it away, or name another folder with --out\n"
    )
    assert contents(tmp_path) == {name: "mine"}


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        ("401 Unauthorized", b"", "--prometheus-token-file"),
        ("401 Unauthorized", b"no org id", "--prometheus-header=X-Scope-OrgID=TENANT"),
        ("403 Forbidden", b"", "--prometheus-token-file"),
        ("429 Too Many Requests", b"", "raise its limits on queries"),
        ("503 Gone", b"", ""),
    ],
)
def test_a_prometheus_that_refuses_is_exit_2_with_the_repair(
    tmp_path: Path, status: str, body: bytes, words: str
) -> None:
    with raw_server(answering(body, status)) as server:
        ended = run("init", f"--prometheus-url={server.url}", f"--out={tmp_path / 'out'}")

    assert (ended.code, ended.out) == (2, "")
    assert ended.error.startswith(f"tidewatch-adapter: {server.url} does not answer queries: ")
    assert words in ended.error
    assert ended.error.count("\n") == 1
    assert contents(tmp_path) == {}


def test_an_unreachable_prometheus_is_exit_2_with_the_repair(tmp_path: Path) -> None:
    ended = run("init", "--prometheus-url=http://127.0.0.1:1", f"--out={tmp_path / 'out'}")

    assert (ended.code, ended.out) == (2, "")
    assert "http://127.0.0.1:1 does not answer queries" in ended.error
    assert "check --prometheus-url" in ended.error
    assert contents(tmp_path) == {}


def test_an_empty_prometheus_is_exit_1_with_the_repair(tmp_path: Path) -> None:
    body = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
    with raw_server(answering(body)) as server:
        ended = run("init", f"--prometheus-url={server.url}", f"--out={tmp_path / 'out'}")

    assert (ended.code, ended.out) == (1, "")
    assert "scrapes no target: configure what it scrapes" in ended.error
    assert contents(tmp_path) == {}


def test_a_partial_answer_is_exit_2_with_its_reason(tmp_path: Path) -> None:
    body = b'{"status":"success","warnings":["store-1 is away"],"data":{"resultType":"vector","result":[]}}'
    with raw_server(answering(body)) as server:
        ended = run("init", f"--prometheus-url={server.url}", f"--out={tmp_path / 'out'}")

    assert (ended.code, ended.out) == (2, "")
    assert "may be partial: store-1 is away: check the stores behind --prometheus-url" in ended.error
    assert contents(tmp_path) == {}


def test_a_store_of_several_clusters_needs_matchers(tmp_path: Path) -> None:
    nodes = ",".join(f'{{"metric":{{"cluster":"{name}"}},"value":[1,"1"]}}' for name in ("eu", "us"))
    body = f'{{"status":"success","data":{{"resultType":"vector","result":[{nodes}]}}}}'
    with raw_server(answering(body.encode())) as server:
        ended = run("init", f"--prometheus-url={server.url}", f"--out={tmp_path / 'out'}")

    assert (ended.code, ended.out) == (2, "")
    assert "several clusters (cluster: eu, us)" in ended.error
    assert "set --prometheus-matchers" in ended.error
    assert contents(tmp_path) == {}


def test_a_missing_prometheus_address_without_a_cluster_is_wrong_usage(tmp_path: Path) -> None:
    ended = run("init", f"--out={tmp_path}", f"--kubeconfig={tmp_path / 'none'}")

    assert (ended.code, ended.out) == (2, "")
    assert "give --prometheus-url to do without a cluster" in ended.error


def test_files_are_written_together_into_new_and_existing_folders(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")
    write_new_files(tmp_path, FILES)
    write_new_files(tmp_path / "a" / "new", FILES)

    assert contents(tmp_path / "a" / "new") == FILES
    assert {path.name for path in tmp_path.iterdir()} == {"a", "other", *FILES}


@pytest.mark.parametrize("taken", FILES)
def test_all_files_are_removed_if_one_name_is_taken_meanwhile(
    tmp_path: Path, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / taken).write_text("mine")
    monkeypatch.setattr("adapter.foundation.files.new_files.refuse_existing", lambda *_: None)
    with pytest.raises(NewFilesError, match=taken):
        write_new_files(tmp_path, FILES)

    assert contents(tmp_path) == {taken: "mine"}


def test_a_dangling_symlink_counts_as_an_existing_file(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(NewFilesError, match=r"rules\.yaml exists"):
        write_new_files(tmp_path, FILES)

    assert [path.name for path in tmp_path.iterdir()] == ["rules.yaml"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(NewFilesError, match="is not a folder"):
        write_new_files(tmp_path / "out", FILES)
