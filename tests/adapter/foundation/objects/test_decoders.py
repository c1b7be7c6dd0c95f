from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys

import msgspec
import pytest

from adapter.foundation.objects.decoders import convert, decoder_of
from tests.support.checkout import CHECKOUT

HELPER = CHECKOUT / "adapter" / "foundation" / "objects" / "decoders.py"
PRODUCT = ("adapter", "recommender", "demo")
PROCESSES = int(os.environ.get("TIDEWATCH_RACING_PROCESSES", "40"))
"""How many processes decode at once with four threads each; set the variable for a more thorough run."""
DECODING = re.compile(r"msgspec\.(\w+\.)?(decode|Decoder|convert)")


class Inner(msgspec.Struct):
    number: int


class Outer(msgspec.Struct):
    inner: Inner | None = None


def describing(source: str) -> list[int]:
    """Return the lines at which msgspec would describe a type."""
    if "msgspec" not in source:
        return []
    found: list[int] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{imported.name}" for imported in node.names)
            found += [node.lineno for name in names if DECODING.fullmatch(name)]
        elif isinstance(node, ast.Call) and DECODING.fullmatch(path := ast.unparse(node.func)):
            # Content without a type becomes plain dictionaries and lists, which need no description.
            plain = path.endswith(".decode") and len(node.args) == 1 and not node.keywords
            found += [] if plain else [node.lineno]
    return found


@pytest.mark.parametrize(
    "source",
    [
        "msgspec.json.decode(body, type=Form)",
        "msgspec.json.decode(body, **options)",
        "msgspec.yaml.decode(body, type=Form)",
        "msgspec.convert(content, Form)",
        "self.decoder = msgspec.json.Decoder(Form)",
        "from msgspec.json import decode",
        "from msgspec import convert as into",
    ],
)
def test_code_that_makes_msgspec_describe_a_type_is_found(source: str) -> None:
    assert describing(source) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "msgspec.json.decode(body)",
        "form: msgspec.json.Decoder[Form] = decoder_of(Form)",
        "Decoder(Form)",
        "msgspec.json.encode(1).decode()",
    ],
)
def test_code_that_describes_no_type_is_not_reported(source: str) -> None:
    assert describing(source) == []


def test_only_the_helper_lets_msgspec_describe_a_type() -> None:
    files = [file for folder in PRODUCT for file in (CHECKOUT / folder).rglob("*.py") if file != HELPER]
    elsewhere = [f"{file.relative_to(CHECKOUT)}:{line}" for file in files for line in describing(file.read_text())]

    assert files
    assert describing(HELPER.read_text())
    assert elsewhere == [], "use decoder_of and converted of adapter/foundation/objects/decoders.py"


def test_a_form_has_one_decoder() -> None:
    assert decoder_of(Outer) is decoder_of(Outer)
    assert decoder_of(Outer | None) is decoder_of(Outer | None)
    assert decoder_of(Outer).decode(b'{"inner": {"number": 1}}') == Outer(Inner(1))
    assert decoder_of(Inner, strict=False).decode(b'{"number": "1"}') == Inner(1)
    with pytest.raises(msgspec.ValidationError, match=r"Expected `int`, got `str`"):
        decoder_of(Inner).decode(b'{"number": "1"}')


def test_content_is_converted() -> None:
    assert convert({"inner": {"number": 1}}, Outer) == Outer(Inner(1))
    assert convert(None, Outer | None) is None
    with pytest.raises(msgspec.ValidationError, match=r"\$\.inner\.number"):
        convert({"inner": {"number": "1"}}, Outer)


def test_threads_that_first_decode_a_form_at_once_do_not_crash_the_process() -> None:
    """If msgspec itself decodes (`bare`), every one of these processes dies."""
    command = [sys.executable, "-m", "tests.adapter.foundation.objects.racing_decoders", "shared", str(PROCESSES)]
    ran = subprocess.run(command, cwd=CHECKOUT, check=True, timeout=100, stdout=subprocess.PIPE)
    assert json.loads(ran.stdout) == [0] * PROCESSES
