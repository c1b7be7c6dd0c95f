"""Generates rule files as inputs, with YAML in every style in which a text, a list or a mapping can be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.oracle.inputs.texts import damaged, piece, some

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.e2e.oracle.asking import Question

_PLAIN = (
    *(
        "yes",
        "no",
        "on",
        "off",
        "y",
        "N",
        "true",
        "False",
        "TRUE",
        "null",
        "~",
        "Null",
        "",
        "1",
        "1e3",
        "1.0",
        "0x1F",
        "0o7",
    ),
    *(
        "010",
        "1_000",
        "+1",
        "-.inf",
        ".nan",
        "2001-01-01",
        "2001-12-14t21:59:43.10-05:00",
        "12:30:45",
        "=",
        "<<",
        "a b",
        "é",
    ),
    *(
        "sum(<<.Series>>)",
        "a#b",
        "a #b",
        "a: b",
        "a:b",
        "-a",
        "- a",
        "?a",
        "!a",
        "&a",
        "*a",
        "@a",
        "`a`",
        "%a",
        "[a",
        "{a",
        "]",
    ),
    *(
        "!!str 1",
        "!!str",
        "!!int 1",
        "!!binary aGk=",
        "!!null x",
        "!foo x",
        "!!float 1",
        "!!bool yes",
        "!!bool x",
        "!!int x",
        "!!float x",
        "! 1",
    ),
    *(
        "^(.*)_total$",
        "${1}_per_second",
        '{__name__=~"^container_.*"}',
        "0b1",
        "1.",
        ".5",
        "1e",
        "0xG",
        "--1",
        "1:2",
        "0.0",
    ),
)
_QUOTED = (
    *(
        "'yes'",
        "''",
        "'a''b'",
        "'a\\nb'",
        '"a\\nb"',
        '"a\\"b"',
        '"\\x41"',
        '"\\u00e9"',
        '"\\U0001F680"',
        '"\\e"',
        '"\\/"',
    ),
    *(
        '"\\q"',
        '"a\n    b"',
        "'a\n    b'",
        '"a\\\n    b"',
        '"\\ud800"',
        '"\t"',
        '"~"',
        "'null'",
        '"\\N\\_\\L\\P"',
        '""',
        '"\\0"',
    ),
)
_BLOCKS = ("|", ">", "|-", ">-", "|+", ">+", "|2", ">1-", "| # note", "|x", "|10")
_RULE_KEYS = ("seriesQuery", "metricsQuery", "seriesFilters", "resources", "name")


def _block(random: Random, indent: str) -> str:
    lines = [
        random.choice(("a", "  b", "", "# c", "sum(x)", "\td", "- e", "f: g", "é")) for _ in range(random.randint(0, 3))
    ]
    return random.choice(_BLOCKS) + "\n" + "\n".join(f"{indent}  {line}" for line in lines) + "\n"


def _scalar(random: Random, indent: str) -> str:
    anchor = random.choice(("&a ", "&b ")) if random.random() < 0.08 else ""
    kind = random.random()
    if kind < 0.5:
        return anchor + random.choice(_PLAIN)
    if kind < 0.75:
        return anchor + random.choice(_QUOTED)
    if kind < 0.88:
        return anchor + _block(random, indent)
    return random.choice(("*a", "*b", "a\n" + indent + "  b", "[x]", "{x: y}", "[]", "{}"))


def _pairs(random: Random, indent: str, *keys: str) -> str:
    lines = [f"{indent}{piece(random, *keys)}: {_scalar(random, indent)}" for _ in range(random.randint(1, 3))]
    return "\n".join(lines)


def _flow(random: Random, *keys: str) -> str:
    return (
        "{"
        + ", ".join(
            f"{random.choice(keys)}: {random.choice((*_PLAIN[:20], *_QUOTED[:8]))}" for _ in range(random.randint(0, 2))
        )
        + "}"
    )


def _name(random: Random, indent: str) -> str:
    if random.random() < 0.3:
        return f"{indent}name: {_flow(random, 'matches', 'as')}"
    return f"{indent}name:\n{_pairs(random, indent + '  ', 'matches', 'as')}"


def _resources(random: Random, indent: str) -> str:
    inner = indent + "  "
    lines = [f"{indent}resources:"]
    if random.random() < 0.5:
        lines.append(f"{inner}namespaced: {random.choice(_PLAIN[:14])}")
    if random.random() < 0.5:
        lines.append(f"{inner}template: {_scalar(random, inner)}")
    if random.random() < 0.6:
        label = piece(
            random, "pod", "namespace", "yes", "1", "a", "~", "1.0", '"a"', "0x1F", "true", "1_0", "2001-01-01"
        )
        lines.append(f"{inner}overrides:\n{inner}  {label}: {_flow(random, 'group', 'resource')}")
    return "\n".join(lines)


def _filters(random: Random, indent: str) -> str:
    items = [
        f"{indent}- {random.choice(('is', 'isNot'))}: {_scalar(random, indent + '  ')}"
        for _ in range(random.randint(0, 2))
    ]
    return "\n".join([f"{indent}seriesFilters:", *items])


def _query(random: Random, indent: str) -> str:
    return _pairs(random, indent, "seriesQuery", "metricsQuery")


def _merge(random: Random, indent: str) -> str:
    return indent + random.choice(
        ("<<: *a", "<<: *m", "<<: [*m, *a]", "<<: {seriesQuery: merged}", "<<: x", "<<:", '"<<": x')
    )


def _odd(random: Random, indent: str) -> str:
    key = random.choice(
        (*_RULE_KEYS, "other", "Seriesquery", "? seriesQuery\n" + indent, '"seriesQuery"', "!!str seriesQuery")
    )
    return f"{indent}{key}: {_scalar(random, indent)}"


def _rule(random: Random, indent: str) -> str:
    makers = (_query, _query, _name, _resources, _filters, _merge, _odd)
    body = some(random, lambda source: source.choice(makers)(source, indent), 3, 1, "\n")
    anchor = random.choice(("&m", "&a")) if random.random() < 0.15 else ""
    if anchor:
        return f"{indent[:-2]}- {anchor}\n{body}"
    return f"{indent[:-2]}-{body[len(indent) - 1 :]}"


def _rules(random: Random, indent: str) -> str:
    return some(random, lambda source: _rule(source, indent), 2, 1, "\n")


def _file(random: Random) -> str:
    start = random.choice(("", "", "", "---\n", "# note\n", "%YAML 1.1\n---\n", "\ufeff"))
    sections = ("rules", "externalRules")[: random.randint(1, 2)]
    middle = "".join(f"{section}:\n{_rules(random, random.choice(('  ', '    ')))}\n" for section in sections)
    return start + middle + random.choice(("", "", "", "...\n", "---\n", "---\nrules: []\n", "rules:\n", "other: 1\n"))


def _scalar_file(random: Random) -> str:
    """Return a file with a single field of interest, so that no other fault can hide its effect."""
    scalar = _scalar(random, "  ")
    if random.random() < 0.2:
        return f"rules:\n- resources: {{namespaced: {scalar}}}\n"
    return f"rules:\n- metricsQuery: {scalar}\n"


def rule_files(random: Random, count: int) -> Iterator[Question]:
    """Yield rule files."""
    for _ in range(count):
        text = _scalar_file(random) if random.random() < 0.5 else _file(random)
        yield {"text": damaged(random, text) if random.random() < 0.08 else text}
