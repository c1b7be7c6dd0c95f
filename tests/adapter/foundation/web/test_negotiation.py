from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.web.negotiation import (
    LONGEST_ACCEPT,
    accepts_gzip,
    accepts_objects,
    aggregated_version,
    is_current,
    served_type,
    table_version,
    wants_indent,
)

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
V3 = "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList"
PROTOBUF_V2 = "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (f"{V2},{V2BETA1},application/json", "v2"),
        (f"{V2BETA1},application/json", "v2beta1"),
        ("application/json; g=apidiscovery.k8s.io ;as=APIGroupDiscoveryList; v=v2", "v2"),
        (f"{V3},{V2}", "v2"),
        (f"{PROTOBUF_V2},{V2}", "v2"),
        (f"application/vnd.kubernetes.protobuf,{V2}", "v2"),
        (f"{V2BETA1};q=0.5,{V2};q=0.9", "v2"),
        (f"application/json;q=0.1,{V2};q=0.2", "v2"),
        (f"{V2};q=x", "v2"),
        (f"{V2};q=1.5,application/json", "v2"),
    ],
)
def test_aggregated_discovery_is_served_in_the_preferred_version(accept: str, version: str) -> None:
    assert aggregated_version(accept) == version


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "application/*",
        "application/json, */*",
        f"application/json,{V2}",
        f"*/*,{V2}",
        f"{V2};q=0.5,application/json",
        f"{V2};q=0,application/json",
        V3,
        PROTOBUF_V2,
        V2.replace("k8s.io", "example.com"),
        V2.replace("GroupDiscoveryList", "GroupList"),
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        "application/vnd.kubernetes.protobuf, */*",
        ";;=,,",
    ],
)
def test_aggregated_discovery_is_not_served_to_clients_that_do_not_prefer_it(accept: str) -> None:
    assert aggregated_version(accept) is None


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
OLDER_TABLE = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (f"{TABLE},{OLDER_TABLE},application/json", "v1"),
        (f"{OLDER_TABLE},application/json", "v1beta1"),
        ("application/json; g=meta.k8s.io ;v=v1; as=Table", "v1"),
        (f"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,{TABLE},application/json", "v1"),
        (f"{METADATA},{TABLE}", "v1"),
        (f"application/json;q=0.5,{TABLE};q=0.9", "v1"),
        (f"{TABLE.replace('v=v1', 'v=v2')},{OLDER_TABLE}", "v1beta1"),
        ("", None),
        ("*/*", None),
        ("application/json", None),
        (f"application/json,{TABLE}", None),
        (f"{TABLE};q=0,application/json", None),
        (TABLE.replace("meta.k8s.io", "example.com"), None),
        (TABLE.replace("v=v1", "v=v2"), None),
        (METADATA, None),
        (V2, None),
        ("application/vnd.kubernetes.protobuf, */*", None),
    ],
)
def test_a_table_is_served_in_the_preferred_version(accept: str, version: str | None) -> None:
    assert table_version(accept) == version


@pytest.mark.parametrize("header", ["gzip", "deflate, gzip", " gzip ,br", "gzip, deflate;q=0.5"])
def test_gzip_is_accepted(header: str) -> None:
    assert accepts_gzip(header)


@pytest.mark.parametrize("header", ["", "identity", "*", "gzip;q=0", "gzip;q=1", "x-gzip", "GZIP", "gzipped"])
def test_gzip_is_not_accepted(header: str) -> None:
    assert not accepts_gzip(header)


@pytest.mark.parametrize("header", ['"a"', 'W/"a"', '"b", "a"', 'W/"b",W/"a"', "*"])
def test_an_etag_that_the_client_has_is_current(header: str) -> None:
    assert is_current('"a"', header)


@pytest.mark.parametrize("header", ["", "a", '"b"', '"A"', 'w/"a"', '"*"', '*, "b"', '"a'])
def test_an_etag_that_the_client_does_not_have_is_not_current(header: str) -> None:
    assert not is_current('"a"', header)


@pytest.mark.parametrize(
    ("query", "agent", "indented"),
    [
        ("", "curl/8.5.0", True),
        ("", "Wget/1.21", True),
        ("", "Mozilla/5.0 (X11)", True),
        ("", "Mozilla/4.0", False),
        ("", "libcurl/8.5.0", False),
        ("", "kubectl/v1.34.0", False),
        ("", "", False),
        ("pretty=true", "", True),
        ("pretty=1", "kubectl/v1.34.0", True),
        ("a=b&pretty=T", "", True),
        ("pretty=false", "curl/8.5.0", False),
        ("pretty=0", "curl/8.5.0", False),
        ("pretty=yes", "curl/8.5.0", False),
        ("pretty=%74rue", "", True),
        ("pretty=", "curl/8.5.0", True),
        ("pretty", "curl/8.5.0", True),
        ("pretty", "", False),
        ("pretty=%zz&pretty=true", "", True),
        ("pretty=false&pretty=true", "curl/8.5.0", False),
        ("pretties=true", "", False),
        ("labelSelector=pretty%3Dtrue", "", False),
    ],
)
def test_json_is_indented_for_the_same_requests_as_in_go(query: str, agent: str, indented: bool) -> None:  # noqa: FBT001 - a table
    assert wants_indent(query, agent) is indented


HEADERS = st.one_of(
    st.text(st.characters(max_codepoint=255)),
    st.lists(
        st.sampled_from([*V2.split(";"), "q=0.5", "q=", "q=nan", "q=-inf", ",", ";", "=", '"', "*", " "]), max_size=12
    ).map(";".join),
)


@given(HEADERS, HEADERS)
def test_no_header_value_is_an_error(header: str, other: str) -> None:
    assert aggregated_version(header) in {None, "v2", "v2beta1"}
    assert table_version(header) in {None, "v1", "v1beta1"}
    accepts_gzip(header)
    is_current('"a"', header)
    wants_indent(f"pretty{header}", other)


@pytest.mark.parametrize(
    ("accept", "served"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("application/vnd.kubernetes.protobuf, */*", "application/json"),
        ("application/vnd.kubernetes.protobuf,application/json", "application/json"),
        (f"{V2},{V2BETA1}", "application/json"),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", "application/json"),
        ("application/yaml", "application/yaml"),
        ("application/yaml, application/json", "application/yaml"),
        ("application/yaml;q=0.5, application/json;q=0.9", "application/json"),
        ("text/html, application/yaml;q=0.1", "application/yaml"),
        ("application/vnd.kubernetes.protobuf", None),
        ("text/html", None),
        ("application/json;q=0", None),
        ("*/*;q=0, text/html", None),
        ("text/*", None),
    ],
)
def test_the_content_type_is_json_yaml_or_not_acceptable(accept: str, served: str | None) -> None:
    assert served_type(accept) == served


@pytest.mark.parametrize("unread", [",", ";", "x,", "application/json;q=0.1,"])
def test_an_accept_header_that_is_too_long_accepts_nothing(unread: str) -> None:
    longest = f"application/json,{unread * LONGEST_ACCEPT}"[:LONGEST_ACCEPT]
    assert served_type(longest) == "application/json"
    assert served_type(f"{longest}x") is None
    assert not accepts_objects(f"{longest}x")
    assert aggregated_version(f"{V2},{longest}") is None
    assert table_version(f"{TABLE},{longest}") is None


def test_an_accept_header_that_is_too_long_is_not_kept_in_memory() -> None:
    header = f"application/json,{'x' * LONGEST_ACCEPT}"
    before = sys.getrefcount(header)
    for read in (served_type, accepts_objects, aggregated_version, table_version):
        read(header)
    assert sys.getrefcount(header) == before
