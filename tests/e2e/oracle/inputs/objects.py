"""Inputs that belong to Kubernetes: quantities, selectors, durations, names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.oracle.inputs.texts import mostly_sound, one_of, picked, piece, some

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.e2e.oracle.asking import Question

_SUFFIXES = (
    *("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E3", "e-3", "e+3"),
    *("e0", "e1", "e2", "e-9", "e-10", "e18", "e19", "E0", "e00", "e-0", "e30", "e-30"),
)
_WRONG_SUFFIXES = (
    "K",
    "mi",
    "ki",
    "KI",
    "i",
    "e",
    "E+",
    "e3.5",
    "em",
    "kk",
    "Zi",
    "µ",
    "e1e1",
    "e1001",
    "e-1001",
    " m",
    "d",
)
_EDGES = (
    *("0", "00", "1", "9", "999", "1000", "1023", "1024", "1025", "1048576", "2147483648", "9223372036854775807"),
    *("9223372036854775808", "9223372036854775806", "9223372036854775", "18446744073709551616", "99999999999999999999"),
    *("999999999999999999", "1000000000000000000", "1152921504606846975", "8388608", "10000000000000000000000000001"),
)


def _digits(random: Random) -> str:
    if random.random() < 0.4:
        return random.choice(_EDGES)
    return some(random, lambda source: source.choice("0001234567899"), random.choice((3, 5, 12, 22)))


def _quantity(random: Random) -> str:
    sign = random.choice(("", "", "", "-", "+"))
    fraction = "." + _digits(random) if random.random() < 0.4 else ""
    suffixes = _SUFFIXES if random.random() < 0.93 else _WRONG_SUFFIXES
    return sign + _digits(random) + fraction + random.choice(suffixes)


def quantities(random: Random, count: int) -> Iterator[Question]:
    """Yield amounts, each with another one to compare with and to add."""
    others = ("0", "1", "-1", "100m", "1Ki", "1e3", "123456789n", "9223372036854775807", "-1500m", "1Gi")
    for _ in range(count):
        yield {"text": mostly_sound(random, _quantity), "other": random.choice(others)}


_KEYS = ("app", "tier", "a", "b", "example.com/part", "k8s.io/x", "A_b.c-d", "0", "in", "notin", "exists", "a" * 63)
_BAD_KEYS = (
    "a" * 64,
    "-a",
    "a-",
    "a/",
    "/a",
    "a/b/c",
    "Ex.com/a",
    "a..b/c",
    "é",
    "a b",
    f"{'b' * 254}/a",
    f"{'b' * 253}/a",
)
_VALUES = (
    "web",
    "db",
    "",
    "1",
    "-1",
    "+1",
    "007",
    "9223372036854775807",
    "9223372036854775808",
    "x.y_z-0",
    "in",
    "notin",
)
_BAD_VALUES = ("-x", "x-", "a" * 64, "é", "1.5", "1_0", "a/b", "*", "true!", "^a", '"a"', "--1", "-9223372036854775809")


def _key(random: Random) -> str:
    return random.choice(_KEYS if random.random() < 0.9 else _BAD_KEYS)


def _value(random: Random) -> str:
    return random.choice(_VALUES if random.random() < 0.9 else _BAD_VALUES)


def _blank(random: Random) -> str:
    return piece(random, "", "", "", "", " ", "  ", "\t")


def _values(random: Random) -> str:
    inner = some(random, lambda source: _blank(source) + _value(source) + _blank(source), 3, between=",")
    return f"({inner})"


def _requirement(random: Random) -> str:
    key = _key(random)
    blank = _blank(random)
    return one_of(
        random,
        lambda _: key,
        lambda source: f"!{blank}{key}{_blank(source)}",
        lambda source: (
            f"{key}{blank}{source.choice(('=', '==', '!=', '<', '>', '=>', '=!', '!'))}{blank}{_value(source)}"
        ),
        lambda source: f"{key}{blank}{source.choice(('=', '==', '!='))}{blank}{_value(source)}",
        lambda source: f"{key} {blank}{source.choice(('in', 'notin'))}{_blank(source)}{_values(source)}",
        lambda source: (
            f"{key} {source.choice(('IN', 'not in', 'exists', 'in', 'notin'))}{_blank(source)}{_values(source)}"
        ),
    )


def _selector(random: Random) -> str:
    return some(random, lambda source: _blank(source) + _requirement(source) + _blank(source), 3, between=",")


def selectors(random: Random, count: int) -> Iterator[Question]:
    """Yield selectors, each with label sets to match."""
    for _ in range(count):
        sets = [{key: random.choice((*_VALUES, "1.5", "x")) for key in picked(random, _KEYS, 5)} for _ in range(4)]
        yield {"text": mostly_sound(random, _selector), "labels": sets}


_GO_UNITS = ("ns", "us", "µs", "μs", "ms", "s", "m", "h", "s", "m", "h")
_PROMETHEUS_UNITS = ("y", "w", "d", "h", "m", "s", "ms")
_WRONG_UNITS = ("", "d", "S", "min", "µ", "ns", "us", "h ", "mss", "M", "H", "Y", "é", "years")


def _number(random: Random) -> str:
    digits = random.choice(
        ("0", "1", "5", "90", "007", "1000", "2562047", "2562048", "106751", "9223372036", "9223372037")
    )
    return digits if random.random() < 0.7 else _digits(random)


def _go_part(random: Random) -> str:
    number = _number(random)
    if random.random() < 0.3:
        number += "." + _digits(random)
    return number + random.choice(_GO_UNITS if random.random() < 0.95 else _WRONG_UNITS)


def _go_duration(random: Random) -> str:
    return random.choice(("", "", "", "-", "+")) + some(random, _go_part, 3)


def durations(random: Random, count: int) -> Iterator[Question]:
    """Yield durations in Go's syntax."""
    yield from ({"text": text} for text in ("", "0", "-0", "+0", "00", ".s", "-.s", "1", "9223372036854775808ns"))
    for _ in range(count):
        yield {"text": mostly_sound(random, _go_duration)}


def _prometheus_duration(random: Random) -> str:
    ordered = sorted(picked(random, range(len(_PROMETHEUS_UNITS)), 4))
    units = [_PROMETHEUS_UNITS[at] for at in ordered]
    if random.random() < 0.15:
        random.shuffle(units)
    if random.random() < 0.05:
        units.append(random.choice((*_WRONG_UNITS, *_PROMETHEUS_UNITS)))
    return "".join(_number(random) + unit for unit in units)


def prometheus_durations(random: Random, count: int) -> Iterator[Question]:
    """Yield durations in Prometheus' syntax."""
    yield from ({"text": text} for text in ("", "0", "00", "-0", "-1s", "+1s", "1.5h", "1h 30m", "292y", "293y"))
    for _ in range(count):
        yield {"text": mostly_sound(random, _prometheus_duration)}


def _name(random: Random) -> str:
    part = piece(
        random, "a", "web", "Web", "0", "-", ".", "_", "/", ":", "x-1", "%", "example.com", "..", "kube-system"
    )
    return part * random.choice((1, 1, 1, 1, 2, 21, 62, 63, 64, 126, 253, 254))


def names(random: Random, count: int) -> Iterator[Question]:
    """Yield names of objects, labels and metrics."""
    yield from ({"text": text} for text in ("", ".", "..", "...", "a/", "/", "a/b", "a//b", "a\n", "\n", "__name__"))
    for _ in range(count):
        yield {"text": some(random, _name, 4)}
