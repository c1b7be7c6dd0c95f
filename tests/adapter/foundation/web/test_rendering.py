from __future__ import annotations

import gzip
import json

import pytest

from adapter.foundation.web.http import TEXT, Request, Response, json_line
from adapter.foundation.web.rendering import GZIP_FROM_BYTES, MOST_INDENTED_BYTES, render_response

GZIP = (("Accept-Encoding", "deflate, gzip"),)
CURL = (("User-Agent", "curl/8.5.0"),)


def request_with(*headers: tuple[str, str], method: str = "GET", query: str = "") -> Request:
    return Request(method, "/x", query, headers)


def of_size(length: int) -> Response:
    """Return a response whose body has this length to the byte."""
    empty = json_line([""])
    body = json_line(["a" * (length - len(empty))])
    assert len(body) == length
    return Response(200, body, headers=(("Vary", "Accept"),))


def test_a_short_answer_to_a_program_is_sent_unchanged() -> None:
    response = of_size(GZIP_FROM_BYTES)
    assert render_response(response, request_with(*GZIP)) is response


def test_a_long_answer_is_compressed_for_clients_that_accept_gzip() -> None:
    response = of_size(GZIP_FROM_BYTES + 1)
    sent = render_response(response, request_with(*GZIP))
    assert gzip.decompress(sent.body) == response.body
    assert sent.headers == (("Vary", "Accept"), ("Vary", "Accept-Encoding"), ("Content-Encoding", "gzip"))


def test_a_long_answer_is_plain_for_others_and_varies_by_encoding() -> None:
    response = of_size(GZIP_FROM_BYTES + 1)
    sent = render_response(response, request_with())
    assert (sent.body, sent.headers[-1]) == (response.body, ("Vary", "Accept-Encoding"))


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_answers_to_other_methods_are_not_compressed(method: str) -> None:
    response = of_size(GZIP_FROM_BYTES + 1)
    assert render_response(response, request_with(*GZIP, method=method)) is response


def test_a_prepared_compressed_body_is_sent_and_not_compressed_again() -> None:
    response = Response(200, b" " * (GZIP_FROM_BYTES + 1), gzipped=b"ready")
    assert render_response(response, request_with(*GZIP)).body == b"ready"


def test_curl_gets_indented_json_with_a_final_line_feed() -> None:
    sent = render_response(Response(200, json_line({"items": [], "metadata": {}, "a": [1]})), request_with(*CURL))
    assert sent.body == b'{\n  "items": [],\n  "metadata": {},\n  "a": [\n    1\n  ]\n}\n'


def test_an_indented_answer_does_not_use_the_prepared_bytes() -> None:
    response = Response(200, of_size(GZIP_FROM_BYTES + 1).body, gzipped=b"ready")
    sent = render_response(response, request_with(*GZIP, query="pretty=1"))
    assert json.loads(gzip.decompress(sent.body)) == json.loads(response.body)
    assert gzip.decompress(sent.body).startswith(b"[\n  ")


@pytest.mark.parametrize(
    "response",
    [
        Response(200, b'{"a":1}', TEXT),
        Response(304, b""),
        of_size(MOST_INDENTED_BYTES + 1),
    ],
    ids=["text", "nothing", "very long"],
)
def test_text_empty_and_very_long_answers_are_not_indented(response: Response) -> None:
    assert render_response(response, request_with(*CURL)).body == response.body
