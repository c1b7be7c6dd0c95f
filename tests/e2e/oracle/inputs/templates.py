"""Inputs of `metricsQuery`: templates with every word of the language, on data with odd values.

The grammar knows which kind of value belongs where and mostly keeps to it, so that most templates give an output; one
operand in eight is of any kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.oracle.inputs.template_words import BOOLEANS, EVERY, FLOATS, KINDS, LISTS, MAPS, NUMBERS, TEXTS, VERBS
from tests.e2e.oracle.inputs.texts import ODD, damaged, one_of, piece, some

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.e2e.oracle.asking import Question


def _operand(random: Random, kind: tuple[str, ...] | None = None) -> str:
    if kind is None:
        kind = random.choice(KINDS)
    if random.random() < 1 / 8:
        kind = EVERY
    return random.choice(kind)


def _format(random: Random) -> str:
    plain = random.random() < 0.5
    verbs = some(random, lambda source: source.choice(VERBS[:11] if plain else VERBS) + piece(source, "", " ", "_"), 3)
    return '"' + verbs.replace('"', "") + '"'


def _printf(random: Random) -> str:
    template = _format(random)
    count = max(0, template.count("%") + random.choice((0, 0, 0, 0, 0, -1, 1)))
    return " ".join(["printf", template, *(_operand(random) for _ in range(count))])


def _formatted_once(random: Random) -> str:
    return f'printf "{random.choice(VERBS)}" {_operand(random)}'


def _comparison(random: Random) -> str:
    kind = random.choice((TEXTS, NUMBERS, FLOATS, BOOLEANS, EVERY))
    count = 2 if random.random() < 0.8 else random.randint(0, 4)
    word = random.choice(("eq", "ne", "lt", "le", "gt", "ge", "eq"))
    return " ".join([word, *(_operand(random, kind) for _ in range(count))])


def _access(random: Random) -> str:
    position = random.choice(("0", "1", "2", "-1", "9", "'\\x00'", "1.0", "nil", '"pod"', "$x"))
    other = random.choice(("", "", " 1", " 3", " 2 3", " 0 0 0 0"))
    return random.choice(
        (
            f"index {_operand(random, LISTS)} {position}",
            f"index {_operand(random, MAPS)} {_operand(random, TEXTS)}",
            f"index {_operand(random)} {position}{other}",
            f"slice {_operand(random, TEXTS)} {position}{other}",
            f"slice {_operand(random, LISTS)} {position}{other}",
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
    """Yield label templates, each with the resource that it is executed on."""
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
