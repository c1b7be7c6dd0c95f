"""Secrets of a request that its answer repeats are hidden, wherever the answer is cut."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.sources.secrets import LONGEST_SHOWN_PART, NO_SECRETS, Secrets, secrets_of

LETTERS = st.text("ab/+", min_size=8, max_size=60)
TOKEN = "eyJhbGciOiJSUzI1NiJ9.of-a-service-account/with+much=text"


def parts(secret: str, length: int) -> set[str]:
    return {secret[at : at + length] for at in range(len(secret) - length + 1)}


@given(LETTERS, st.lists(st.tuples(st.text("ab/+ …", max_size=20), st.integers(0, 60), st.integers(0, 60))))
def test_no_long_part_of_a_secret_is_left_in_a_message(secret: str, repeated: list[tuple[str, int, int]]) -> None:
    message = "".join(text + secret[begin:end] for text, begin, end in repeated)
    shown = Secrets((secret.encode(),)).hidden_in(message.encode()).decode()
    longest = min(len(secret), LONGEST_SHOWN_PART + 1)
    assert not any(part in shown for part in parts(secret, longest))


@given(st.text("xyz …", max_size=200))
def test_a_message_without_secrets_is_unchanged(message: str) -> None:
    assert Secrets((TOKEN.encode(),)).hidden_in(message.encode()).decode() == message


@given(LETTERS, st.lists(st.tuples(st.text("ab/+", max_size=20), st.booleans())), st.data())
def test_credentials_are_hidden_wherever_an_answer_is_split(
    secret: str, repeated: list[tuple[str, bool]], data: st.DataObject
) -> None:
    answer = "".join(text + secret * is_repeated for text, is_repeated in repeated).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)))))
    pieces = [answer[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    shown = list(Secrets((secret.encode(),)).hidden_in_pieces(pieces))
    assert b"".join(shown) == answer.replace(secret.encode(), "…".encode())
    assert all(shown)


def test_pieces_are_passed_on_at_once_unless_a_credential_may_begin_at_their_end() -> None:
    pieces = Secrets((b"credential",)).hidden_in_pieces(iter([b"event\n", b"next crede", b"ntial\n"]))
    assert list(pieces) == [b"event\n", b"next ", "…\n".encode()]


def test_headers_with_credentials_are_distinguished_from_others() -> None:
    basic = base64.b64encode(b"shop:word-to-pass").decode()
    assert secrets_of({"Authorization": f"Bearer {TOKEN}"}) == Secrets((TOKEN.encode(),))
    assert secrets_of({"authorization": f"Basic {basic}"}) == Secrets((basic.encode(),), (b"word-to-pass",))
    assert secrets_of({"X-Api-Key": "key-of-shop", "X-Scope-OrgID": "production"}, ["in-the-url"]) == Secrets(
        (b"key-of-shop",), (b"in-the-url", b"production")
    )


def test_short_values_are_not_treated_as_secrets() -> None:
    assert secrets_of({"X-Scope-OrgID": "shop", "Authorization": "token"}, ["true"]) == NO_SECRETS
