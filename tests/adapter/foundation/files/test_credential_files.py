"""Credentials that are replaced, broken and repaired while they are in use."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.files.credential_files import (
    LOOK_SECONDS,
    CredentialState,
    followed_credentials,
    refused_credentials,
    token_of,
)
from adapter.foundation.files.followed_files import FollowedFiles
from adapter.foundation.service.runtime.process_telemetry import new_registry

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += LOOK_SECONDS
        return self.now


def test_refused_credentials_are_loaded_again_although_the_file_is_unchanged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that may not be read, or for which no descriptor is free, does not change when that problem ends."""
    caplog.set_level("WARNING")
    path, is_forbidden = tmp_path / "token", [False]
    path.write_text("first")

    def load() -> str:
        if is_forbidden[0]:
            raise PermissionError(13, "Permission denied")
        return token_of(path)

    files = followed_credentials("token", [path], load, Clock())
    is_forbidden[0] = True
    path.write_text("second")
    assert [files.current() for _ in range(3)] == ["first"] * 3
    is_forbidden[0] = False
    assert files.current() == "second"
    (message,) = caplog.messages
    assert "Permission denied" in message
    assert "first" not in message


def test_refused_content_is_loaded_again_once_a_second_and_a_change_at_once() -> None:
    """Looking at a file for each connection must not cost what loading it does."""
    state, now, loads = ["good"], [0.0], list[str]()

    def load(content: str) -> str:
        loads.append(content)
        if content != "good":
            raise ValueError(content)
        return content

    files = FollowedFiles(
        lambda: (state[0], state[0]), load, unusable=(ValueError,), loads_refused_again=True, clock=lambda: now[0]
    )
    state[0] = "bad"
    for _ in range(20):
        files.check()
    now[0] += 1.0
    for _ in range(20):
        files.check()
    assert loads == ["good", "bad", "bad"]
    state[0] = "worse"
    files.check()
    assert loads[3:] == ["worse"]


@pytest.mark.parametrize("content", [b"token", b"token\r\n", b"\xef\xbb\xbftoken\r\n"])
def test_line_ends_and_a_byte_order_mark_are_not_part_of_a_token(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    assert token_of(path) == "token"


@pytest.mark.parametrize("content", ["", "a\nb", "a\x00b", "tokén", "日本"])
def test_a_token_that_does_not_fit_into_a_header_is_refused_and_not_shown(tmp_path: Path, content: str) -> None:
    path = tmp_path / "token"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"^it (is empty|holds)") as raised:
        token_of(path)
    assert not content or content not in str(raised.value)


def test_a_file_too_large_for_a_token_is_refused_with_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"x" * ((64 << 10) + 1))
    with pytest.raises(OSError, match="the file is larger than 64 KiB"):
        token_of(path)


def test_a_metric_shows_whether_the_newest_version_is_refused(tmp_path: Path) -> None:
    registry, path = new_registry("1"), tmp_path / "token"
    path.write_text("first")
    files = followed_credentials("token", [path], lambda: token_of(path), Clock())

    def refused() -> float | None:
        files.current()
        return registry.get_sample_value("tidewatch_credentials_refused", {"credentials": f"token ({path})"})

    assert refused() == 0.0
    path.write_text("")
    assert refused() == 1.0
    path.write_text("second")
    assert refused() == 0.0


def test_credentials_that_are_no_longer_in_use_are_not_in_the_metric(tmp_path: Path) -> None:
    path, name = tmp_path / "token", f"token ({tmp_path / 'token'})"
    path.write_text("first")
    gc.disable()
    try:
        files = followed_credentials("token", [path], lambda: token_of(path), Clock())
        assert name in refused_credentials()
        del files
        assert name not in refused_credentials()
    finally:
        gc.enable()


def test_one_refusal_among_several_credentials_of_one_name_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING")
    states = [CredentialState("several") for _ in range(3)]
    states[1].refuse(ValueError("it is empty"))
    states[2].taken_in()
    assert refused_credentials()["several"]
    states[1].refuse(ValueError("it is empty"))
    assert len(caplog.messages) == 1
    states[1].taken_in()
    assert not refused_credentials()["several"]


def test_credentials_without_a_file_never_change() -> None:
    assert followed_credentials("password", [], lambda: "a", Clock()).current() == "a"
    assert not any(name.startswith("password") for name in refused_credentials())


def test_a_refusal_ends_when_the_former_files_return(tmp_path: Path) -> None:
    """A file that was moved away and back, or on a volume that was away, has the time and inode that it had."""
    path = tmp_path / "token"
    path.write_text("first")
    files = followed_credentials("moved token", [path], lambda: token_of(path), Clock())
    away = path.rename(tmp_path / "away")
    name = f"moved token ({path})"
    assert (files.current(), refused_credentials()[name]) == ("first", True)
    away.rename(path)
    assert (files.current(), refused_credentials()[name]) == ("first", False)
