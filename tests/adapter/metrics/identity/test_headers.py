from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.metrics.identity.callers import UnauthenticatedError
from adapter.metrics.identity.headers import HeaderNames, IdentityHeaders

DEFAULT = IdentityHeaders(HeaderNames())
USER = ("X-Remote-User", "alice")


def test_each_group_line_is_one_group_and_commas_are_kept() -> None:
    identity = DEFAULT.read([USER, ("X-Remote-Group", "a,system:masters"), ("X-Remote-Group", "b")])
    assert identity.groups == ("a,system:masters", "b")


def test_fifteen_hundred_groups_are_kept_in_order() -> None:
    groups = tuple(f"group-{number}" for number in range(1500))
    assert DEFAULT.read([USER, *(("X-Remote-Group", group) for group in groups)]).groups == groups


def test_groups_are_ordered_by_the_listed_headers() -> None:
    headers = IdentityHeaders(HeaderNames(("User",), ("Groups", "Teams"), (), ()))
    read = headers.read([("User", "u"), ("Teams", "t1"), ("Groups", "g1"), ("Teams", "t2")])
    assert read.groups == ("g1", "t1", "t2")


def test_empty_groups_are_ignored() -> None:
    assert DEFAULT.read([USER, ("X-Remote-Group", "")]).groups == ()


@pytest.mark.parametrize(
    ("lines", "user"),
    [
        ([("A", ""), ("B", "bob")], "bob"),
        ([("B", "bob"), ("A", "ann")], "ann"),
        ([("A", ""), ("A", "amy")], "amy"),
        ([("A", "ann"), ("A", "amy")], "ann"),
    ],
)
def test_the_user_is_the_first_value_that_is_not_empty(lines: list[tuple[str, str]], user: str) -> None:
    assert IdentityHeaders(HeaderNames(("A", "B"), (), (), ())).read(lines).user == user


@pytest.mark.parametrize("name", ["x-remote-user", "X-REMOTE-USER", "X-Remote-User"])
def test_case_of_header_names_does_not_matter(name: str) -> None:
    assert DEFAULT.read([(name, "alice")]).user == "alice"


@pytest.mark.parametrize("name", ["X_Remote_User", "X-Remote_User", "X-Remote-User-", "XRemoteUser", "X-Remote-Use"])
def test_similar_header_names_are_not_matched(name: str) -> None:
    with pytest.raises(UnauthenticatedError):
        DEFAULT.read([(name, "alice")])


def test_an_underscore_header_adds_no_group() -> None:
    assert DEFAULT.read([USER, ("X_Remote_Group", "system:masters")]).groups == ()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("X-Remote-Extra-Scopes", "scopes"),
        ("x-remote-extra-ACME.com%2Fproject", "acme.com/project"),
        ("X-Remote-Extra-a%3ab", "a:b"),
        ("X-Remote-Extra-50%", "50%"),
        ("X-Remote-Extra-%zz%41", "%zz%41"),
        ("X-Remote-Extra-%FF", "%ff"),
        ("X-Remote-Extra-", ""),
    ],
)
def test_keys_of_extras_are_lower_case_and_decoded_unless_broken(name: str, key: str) -> None:
    assert DEFAULT.read([USER, (name, "v")]).extra == {key: ("v",)}


def test_all_values_of_an_extra_are_kept() -> None:
    lines = [USER, ("X-Remote-Extra-Scopes", "a,b"), ("X-Remote-Extra-Scopes", "c")]
    assert DEFAULT.read(lines).extra == {"scopes": ("a,b", "c")}


def test_values_are_decoded_as_utf_8() -> None:
    wire = "Renée".encode().decode("latin-1")
    assert DEFAULT.read([("X-Remote-User", wire)]).user == "Renée"


@pytest.mark.parametrize("name", ["X-Remote-User", "X-Remote-Group"])
def test_a_value_that_is_not_utf_8_makes_the_request_unauthenticated(name: str) -> None:
    with pytest.raises(UnauthenticatedError, match="not UTF-8"):
        DEFAULT.read([USER, (name, "\xff")])


NAMES = st.sampled_from(
    ["X-Remote-User", "x-remote-group", "X_Remote_Group", "X-Remote-Extra-a", "X-Remote-Uid", "Host"]
)


@given(st.lists(st.tuples(NAMES, st.text(st.characters(max_codepoint=255)))))
def test_groups_come_only_from_whole_group_lines(lines: list[tuple[str, str]]) -> None:
    try:
        identity = DEFAULT.read(lines)
    except UnauthenticatedError:
        return
    sent = [value.encode("latin-1").decode() for name, value in lines if name == "x-remote-group" and value]
    assert list(identity.groups) == sent
