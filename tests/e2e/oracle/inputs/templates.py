"""Inputs of `metricsQuery`: templates with every word of the language, on data with odd values.

The grammar knows which kind of value stands where and mostly keeps to it, so that most templates give an output; one
operand in eight is of any kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.oracle.inputs.texts import ODD, damaged, one_of, piece, some

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.e2e.oracle.asking import Question

_TEXTS = (
    *('"a"', '""', '"pod"', '"namespace"', "`raw`", "``", '"a\\"b"', '"\\n"', '"\\x41"', '"é"', '"\\u00e9"', '"%"'),
    *(".Series", ".Series", ".LabelMatchers", ".GroupBy", "$.Series", ".LabelValuesByName.pod", '"`"', '"a b"'),
    *(
        "(print .Series)",
        '(index .LabelValuesByName "pod")',
        '(index .LabelValuesByName "none")',
        '"\\101"',
        '"\\U0001F680"',
    ),
    *("(slice .Series 1)", "(slice .Series 1 3)", "(index .GroupBySlice 0)", '(printf "%s" .Series)', "`a\\n`"),
)
_NUMBERS = (
    *("0", "1", "2", "-1", "+3", "0x1F", "010", "0b11", "0o7", "1_000", "1e3", "'a'", "'\\n'", "(len .Series)"),
    *(
        "'\\''",
        "'é'",
        "1E2",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "0x_1",
        "1__0",
        "08",
    ),
)
_FLOATS = (
    *(
        "1.5",
        ".5",
        "2.",
        "1e-7",
        "1.5e300",
        "-2.5",
        "100000.0",
        "1e21",
        "1e20",
        "1234567.0",
        "1e400",
        "0x1p4",
        "1e",
        "0.1",
    ),
    *("0x1p9999", "0x.8p1", "-0x1P-2", "0x1.8", "0x1e2", "1_0.5"),
    *("123456789.0", "0.00001", "1i", "1.0", "-0.0", "1e6", "1e+06", "12345678901234567890"),
)
_BOOLEANS = ("true", "false", "(eq 1 1)", "(not .Series)", "(lt 1 2)", '(ne .Series "a")')
_LISTS = (".GroupBySlice", "(slice .GroupBySlice 1)", "(slice .GroupBySlice 0 1)", "$.GroupBySlice")
_MAPS = (".LabelValuesByName", "$.LabelValuesByName")
_ANY = (
    ".",
    "$",
    "$x",
    "$y",
    "nil",
    ".None",
    ".Series.X",
    ".LabelValuesByName.none",
    ".LabelValuesByName.none.x",
    "$x.Y",
    "bogus",
)
_EVERY = (*_TEXTS, *_NUMBERS, *_FLOATS, *_BOOLEANS, *_LISTS, *_MAPS, *_ANY)
_KINDS = (_TEXTS, _TEXTS, _TEXTS, _NUMBERS, _NUMBERS, _FLOATS, _BOOLEANS, _LISTS, _MAPS, (".", "$x"))

_VERBS = (
    *(
        "%s",
        "%v",
        "%q",
        "%d",
        "%x",
        "%X",
        "%t",
        "%g",
        "%f",
        "%e",
        "%c",
        "%o",
        "%b",
        "%5s",
        "%-5s|",
        "%05d",
        "%+d",
        "% d",
    ),
    *(
        "%.2f",
        "%.3s",
        "%6.2f",
        "%x",
        "% x",
        "%#x",
        "%#q",
        "%+q",
        "%#v",
        "%T",
        "%U",
        "%p",
        "%%",
        "%",
        "%!",
        "%z",
        "%5",
        "%.d",
    ),
    *(
        "%+v",
        "%G",
        "%E",
        "%F",
        "%.0f",
        "%.10g",
        "%5t",
        "%05s",
        "%-05d",
        "%+.2e",
        "%[1]s",
        "%[2]d",
        "%*d",
        "%.*f",
        "%5%",
        "%O",
    ),
    *(
        "%08.3f",
        "%+08d",
        "% 08d",
        "%#o",
        "%#b",
        "%#X",
        "%# x",
        "%5q",
        "%-8q|",
        "%.1q",
        "%5c",
        "%08q",
        "%5v",
        "%05v",
        "%.2v",
    ),
    *(
        "%+g",
        "% f",
        "%#g",
        "%#f",
        "%x ",
        "%.3x",
        "%10x",
        "%-10X|",
        "%010x",
        "%.3d",
        "%8.3d",
        "%+ d",
        "%.f",
        "%#.3g",
        "%w",
    ),
)


def _operand(random: Random, kind: tuple[str, ...] | None = None) -> str:
    if kind is None:
        kind = random.choice(_KINDS)
    if random.random() < 1 / 8:
        kind = _EVERY
    return random.choice(kind)


def _format(random: Random) -> str:
    plain = random.random() < 0.5
    verbs = some(
        random, lambda source: source.choice(_VERBS[:11] if plain else _VERBS) + piece(source, "", " ", "_"), 3
    )
    return '"' + verbs.replace('"', "") + '"'


def _printf(random: Random) -> str:
    template = _format(random)
    count = max(0, template.count("%") + random.choice((0, 0, 0, 0, 0, -1, 1)))
    return " ".join(["printf", template, *(_operand(random) for _ in range(count))])


def _formatted_once(random: Random) -> str:
    return f'printf "{random.choice(_VERBS)}" {_operand(random)}'


def _comparison(random: Random) -> str:
    kind = random.choice((_TEXTS, _NUMBERS, _FLOATS, _BOOLEANS, _EVERY))
    count = 2 if random.random() < 0.8 else random.randint(0, 4)
    word = random.choice(("eq", "ne", "lt", "le", "gt", "ge", "eq"))
    return " ".join([word, *(_operand(random, kind) for _ in range(count))])


def _access(random: Random) -> str:
    position = random.choice(("0", "1", "2", "-1", "9", "'\\x00'", "1.0", "nil", '"pod"', "$x"))
    other = random.choice(("", "", " 1", " 3", " 2 3", " 0 0 0 0"))
    return random.choice(
        (
            f"index {_operand(random, _LISTS)} {position}",
            f"index {_operand(random, _MAPS)} {_operand(random, _TEXTS)}",
            f"index {_operand(random)} {position}{other}",
            f"slice {_operand(random, _TEXTS)} {position}{other}",
            f"slice {_operand(random, _LISTS)} {position}{other}",
            f"slice {_operand(random)}{other}",
            f"len {_operand(random)}",
        )
    )


def _listing(random: Random) -> str:
    word = random.choice(("print", "println", "and", "or", "not", "html", "js", "urlquery", "print", "print"))
    return " ".join([word, *(_operand(random) for _ in range(1 if word == "not" else random.randint(0, 4)))])


def _call(random: Random) -> str:
    return one_of(random, _printf, _formatted_once, _formatted_once, _comparison, _access, _access, _listing)


def _pipeline(random: Random) -> str:
    if random.random() < 0.35:
        return _operand(random)
    first = _call(random)
    if random.random() < 0.25:
        onward = (
            'printf "%s"',
            'printf "%v|%v" 1',
            "len",
            "not",
            "print",
            "index .LabelValuesByName",
            "eq 1",
            "println",
            ".Series",
            '"a"',
        )
        return f"{first} | {random.choice(onward)}"
    return f"({first}) | print" if random.random() < 0.05 else first


def _open(random: Random) -> str:
    return piece(random, "<<", "<<", "<<", "<< ", "<<- ", "<<-", "<<\n") if random.random() < 0.3 else "<<"


def _close(random: Random) -> str:
    return piece(random, ">>", ">>", ">>", " >>", " ->>", "->>", "\n>>") if random.random() < 0.3 else ">>"


def _tag(random: Random, inside: str) -> str:
    return _open(random) + inside + _close(random)


def _declaration(random: Random) -> str:
    blank = random.choice((" ", "", " "))
    return f"$x{blank}{random.choice((':=', ':=', '='))}{blank}{_pipeline(random)}"


def _text(random: Random) -> str:
    return piece(
        random, "sum(", ")", "{", "}", " by (", "a", "\n", "  ", ",", "rate", "[5m]", "< ", " >", "{{.Series}}", "-"
    )


def _range(random: Random) -> str:
    over = random.choice(
        (".GroupBySlice", ".LabelValuesByName", "$.GroupBySlice", "3", "nil", "0", _operand(random), _pipeline(random))
    )
    return (
        random.choice(
            ("range $k, $x := ", "range $x := ", "range ", "range $x, $y = ", "range $x = ", "range $_, $x := ")
        )
        + over
    )


def _start(random: Random) -> str:
    return one_of(
        random,
        lambda source: f"if {_pipeline(source)}",
        lambda source: f"with {_pipeline(source)}",
        lambda source: f"with {_declaration(source)}",
        lambda source: f"if {_declaration(source)}",
        _range,
        _range,
    )


def _block(random: Random, depth: int) -> str:
    start = _start(random)
    middle = ""
    chance = random.random()
    if chance < 0.3:
        middle = _tag(random, "else") + _body(random, depth + 1)
    elif chance < 0.45:
        middle = _tag(random, f"else {random.choice(('if', 'with', 'range'))} {_pipeline(random)}") + _body(
            random, depth + 1
        )
    end = _tag(random, "end") if random.random() < 0.98 else ""
    return _tag(random, start) + _body(random, depth + 1) + middle + end


def _definition(random: Random, depth: int) -> str:
    name = random.choice(('"t"', '"u"', "`t`"))
    return random.choice(
        (
            f"<<define {name}>>{_body(random, depth + 2)}<<end>>",
            f"<<template {name}{random.choice((' .', '', ' .Series', ' $x'))}>>",
            f"<<block {name} .>>{_body(random, depth + 2)}<<end>>",
        )
    )


def _leave(random: Random) -> str:
    return random.choice(
        ("<<break>>", "<<continue>>", "<<- /* note */ ->>", "<</* >> */>>", "<</**/ ->>", "<< /* x */>>", "<<>>")
    )


def _node(random: Random, depth: int) -> str:
    kind = random.random()
    if kind < 0.3:
        return _text(random)
    if kind < 0.7:
        return _tag(random, _pipeline(random))
    if kind < 0.78:
        return _tag(random, _declaration(random))
    if kind < 0.82:
        return _leave(random)
    if kind < 0.84:
        return _definition(random, depth)
    return _block(random, depth) if depth < 3 else _text(random)


def _body(random: Random, depth: int) -> str:
    return some(random, lambda source: _node(source, depth), 3)


def _template(random: Random) -> str:
    kind = random.random()
    if kind < 0.3:
        return _tag(random, _pipeline(random))
    if kind < 0.45:
        return f"<<{_call(random)}>>"
    declared = "<<$x := .Series>>" if random.random() < 0.7 else ""
    return declared + _body(random, 0)


def _data(random: Random) -> dict[str, Any]:
    labels = random.choice((["pod"], ["namespace", "pod"], [], ["é", "pod"], ["none"]))
    text = random.choice(ODD)
    values = {label: random.choice(("web-0", "", "a|b", 'x"y', text)) for label in (*labels, "namespace")}
    return {
        "Series": random.choice(("http_requests_total", "a", "", "é日本", f"s{text}s")),
        "LabelMatchers": random.choice(('namespace="shop",pod=~"a|b"', "", f'a="{text}"')),
        "LabelValuesByName": values if random.random() < 0.9 else {},
        "GroupBy": ",".join(labels),
        "GroupBySlice": labels,
    }


def templates(random: Random, count: int) -> Iterator[Question]:
    """Yield templates of queries with the data to execute them on."""
    for _ in range(count):
        text = _template(random)
        yield {"text": damaged(random, text) if random.random() < 0.08 else text, "data": _data(random)}


def label_templates(random: Random, count: int) -> Iterator[Question]:
    """Yield templates of labels with the resource whose label they make."""
    pieces = (
        "kube_",
        "<<.Group>>",
        "_",
        "<<.Resource>>",
        "<<.Name>>",
        "<<- .Resource ->>",
        " ",
        "<<if .Group>><<.Group>>_<<end>>",
    )
    for _ in range(count):
        text = some(random, lambda source: piece(source, *pieces), 4)
        yield {
            "text": text,
            "group": random.choice(("", "apps", "cheese_io")),
            "resource": random.choice(("pod", "ingress")),
        }
