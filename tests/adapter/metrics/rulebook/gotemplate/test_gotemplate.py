"""Go's template language; every output in these tables and in `go_templates.json` was made by Go 1.26."""

from __future__ import annotations

import json
import pathlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.metrics.rulebook.gotemplate import Struct, TemplateError, execute, parse_template

DATA = Struct(
    {
        "Series": "some_series",
        "LabelMatchers": 'a="b",pod="web-0"',
        "LabelValuesByName": {"namespace": "shop", "pod": "web-0|web-1", "a": "b", "z": ""},
        "GroupBy": "namespace,pod",
        "GroupBySlice": ("namespace", "pod"),
    }
)


def render(text: str) -> str:
    return execute(parse_template(text), DATA)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("", ""),
        ("sum(up)", "sum(up)"),
        (
            "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
            'sum(some_series{a="b",pod="web-0"}) by (namespace,pod)',
        ),
        ("<<$.Series>>", "some_series"),
        ("<<-3>>", "-3"),
        # A key that a map lacks: `index` gives the empty text, a field prints a complaint.
        ('<<index .LabelValuesByName "pod">>', "web-0|web-1"),
        ('[<<index .LabelValuesByName "none">>]', "[]"),
        ("<<.LabelValuesByName.pod>>", "web-0|web-1"),
        ("<<.LabelValuesByName.none>>", "<no value>"),
        ("<<eq .LabelValuesByName.none nil>>", "true"),
        # Lists and maps print as Go prints them, maps sorted.
        (
            "<<.GroupBySlice>> <<.LabelValuesByName>>",
            "[namespace pod] map[a:b namespace:shop pod:web-0|web-1 z:]",
        ),
        ("<<(index .GroupBySlice 0)>>", "namespace"),
        # A surrogate is no character, in Go as here.
        ('<<printf "%c%c%c%c" 55295 55296 57343 57344>>', "\ud7ff\ufffd\ufffd\ue000"),
        # Other delimiters are text.
        ("{{- range .GroupBySlice }}{{.}}{{end}}", "{{- range .GroupBySlice }}{{.}}{{end}}"),
    ],
)
def test_values_are_rendered_as_go_renders_them(text: str, output: str) -> None:
    assert render(text) == output


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("a <<- .Series ->> b", "asome_seriesb"),
        ("a <<- /* c >> */ ->> b", "ab"),
        ("<<.Series>>\n  <<- .Series>>", "some_seriessome_series"),
        ("a <</* x */>> b", "a  b"),
        ("<<print 1 ->>  \n x", "1x"),
        ("a<b << .Series >>", "a<b some_series"),
    ],
)
def test_trim_markers_and_comments_are_removed(text: str, output: str) -> None:
    assert render(text) == output


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("<<range $k, $v := .LabelValuesByName>><<$k>>=<<$v>>;<<end>>", "a=b;namespace=shop;pod=web-0|web-1;z=;"),
        ("<<range $i, $v := .GroupBySlice>><<if $i>>,<<end>><<$v>><<end>>", "namespace,pod"),
        ("<<range .GroupBySlice>><<.>> <<end>>", "namespace pod "),
        ("<<range 3>><<.>><<end>>", "012"),
        ("<<range $x := .GroupBySlice>><<$x>><<break>><<end>>", "namespace"),
        ('<<range .GroupBySlice>><<if eq . "pod">><<continue>><<end>><<.>><<end>>', "namespace"),
        ("<<range slice .GroupBySlice 2>>x<<else>>none<<end>>", "none"),
        ("<<range .LabelValuesByName.none>>x<<else>>none<<end>>", "none"),
        ('<<$x := "a">><<range $x = .GroupBySlice>><<end>><<$x>>', "pod"),
        ('<<if eq .GroupBy "pod">>a<<else if .Series>>b<<else>>c<<end>>', "b"),
        ("<<if and .Series (not .LabelMatchers)>>a<<else>>b<<end>>", "b"),
        ("<<with .LabelValuesByName.z>>a<<else with .Series>><<.>><<end>>", "some_series"),
        ("<<with $x := .Series>><<$x>><<end>>", "some_series"),
        ('<<$x := "a">><<if true>><<$x = "b">><<end>><<$x>>', "b"),
        ('<<$x := "a">><<if true>><<$x := "b">><<end>><<$x>>', "a"),
    ],
)
def test_control_structures_work_as_in_go(text: str, output: str) -> None:
    assert render(text) == output


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ('<<"a" | printf "%s-%s" "b">>', "b-a"),
        ('<<print 1 2 "a" 3 true nil>>', "1 2a3 true <nil>"),
        ('<<println "a" 1>>', "a 1\n"),
        ('<<len .Series>> <<len "é">> <<len .LabelValuesByName>>', "11 2 4"),
        ('<<index "abc" 1>> <<slice "abcdef" 1 3>> <<slice .GroupBySlice 1>>', "98 bc [pod]"),
        (
            '<<eq 1 2 1>> <<ne "a" "b">> <<lt 1 2>> <<le "b" "a">> <<gt 2.5 1.5>> <<ge 1 1>>',
            "true true true false true true",
        ),
        # What decides is returned, and nothing behind it is looked at.
        ('<<or "" "x">> <<and "x" "">> <<not "">>', "x  true"),
        ("<<or .Series (index .GroupBySlice 9)>>", "some_series"),
        ('<<eq 1 1 "a">>', "true"),
    ],
)
def test_functions_work_as_in_go(text: str, output: str) -> None:
    assert render(text) == output


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (
            '<<printf "%s:%d:%v:%q:%t" .Series 3 .GroupBySlice "a\\"b" true>>',
            'some_series:3:[namespace pod]:"a\\"b":true',
        ),
        (
            '<<printf "%5s|%-5s|%05d|%+d|%x|%X|%.2f|%g|%c|%%" "a" "b" 42 7 255 "hi" 1.5 1e6 65>>',
            "    a|b    |00042|+7|ff|6869|1.50|1e+06|A|%",
        ),
        ('<<printf "%q %#q %q" \'x\' "raw" .GroupBySlice>>', '\'x\' `raw` ["namespace" "pod"]'),
        ('<<printf "%#x % x" .GroupBySlice "ab">>', "[0x6e616d657370616365 0x706f64] 61 62"),
        ('<<printf "%v" .LabelValuesByName.none>>', "<nil>"),
        (
            "<<1e3>> <<1000000.0>> <<0x1F>> <<010>> <<1_000>> <<.5>> <<'a'>> <<`r\\aw`>> <<\"\\x41\\u00e9\\n\">>",
            "1000 1e+06 31 8 1000 0.5 97 r\\aw Aé\n",
        ),
    ],
)
def test_formats_and_literals_are_those_of_go(text: str, output: str) -> None:
    assert render(text) == output


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("<<.Series", 1, "not closed by >>"),
        ("a\nb <<.Series", 2, "not closed by >>"),
        ("<<>>", 1, "lacks a value"),
        ("<<.Series x>>", 1, "'x' is not defined"),
        ("x\n<<bogus .Series>>", 2, "'bogus' is not defined"),
        ("<<$x>>", 1, r"\$x is not declared"),
        ("<<if true>>", 1, "no `end`"),
        ("\n<<if true>>\n<<else>>", 2, "line 2 has no `end`"),
        ("<<end>>", 1, "`end` has no matching"),
        ("<<else>>", 1, "`else` has no matching"),
        ("<<if true>><<else>><<else>><<end>>", 1, "a second `else`"),
        ("<<if>>x<<end>>", 1, "`if` lacks a value"),
        ("<<break>>", 1, "outside `range`"),
        ("<<range $a, $b, $c := .GroupBySlice>><<end>>", 1, "at most two variables"),
        ("<<(.Series>>", 1, "parentheses lacks a value"),
        ("<<.Series)>>", 1, r"unexpected '\)'"),
        ('<<"abc>>', 1, "not closed by its quote"),
        ('<<"\\z">>', 1, "is not an escape sequence"),
        ("<<'ab'>>", 1, "not one character"),
        ("<<1x>>", 1, "not a number"),
        ("<<1i>>", 1, "complex numbers"),
        ("<<99999999999999999999>>", 1, "too large"),
        ("<<#>>", 1, "unexpected character '#'"),
        ("<<.Series#>>", 1, "unexpected character '#' after '.Series'"),
        ("<</* x", 1, r"not closed by \*/"),
        ("<</* x */ .Series>>", 1, "an action with a comment can contain nothing else"),
        ('<<.Series | "x">>', 1, "| must be followed by a function"),
        ("<<" + "(" * 60 + "1" + ")" * 60 + ">>", 1, "levels"),
        ('\n<<if true>><<define "x">><<end>><<end>>', 2, "`define` is allowed only at the outermost level"),
        ('\n<<block "x" .>>', 2, "the `block` of line 2 has no `end`"),
        ('<<define "x">>a<<end>>\n<<define "x">>b<<end>>', 2, "the template 'x' is defined twice"),
        ('<<define "x">>\n<<else>><<end>>', 2, "`else` in the `define` of line 1"),
        ("<<template x>>", 1, "`template` must be followed by the name of a template in quotes"),
        ('<<range .GroupBySlice>><<block "x" .>><<break>><<end>><<end>>', 1, "`break` outside `range`"),
        ('<<block "a" .>>' * 60, 1, "levels"),
        # Go reads this, and fails whenever it is executed: no value is a function.
        ("<<call .Series>>", 1, "`call` is not supported"),
    ],
)
def test_an_invalid_template_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(TemplateError, match=message) as caught:
        parse_template(text)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<<.Nope>>", "no field .Nope; the fields are .Series"),
        ("<<.Series.Nope>>", "no field .Nope in a string"),
        ("<<.>>", "prints all the data"),
        ("<<print .>>", "prints all the data"),
        ('<<.Series "x">>', "only a function takes arguments"),
        ("<<.Series | .GroupBy>>", "only a function takes arguments"),
        ("<<index .GroupBySlice 2>>", "2 is out of range"),
        ("<<index .LabelValuesByName 1>>", "the key of a map must be a string"),
        ('<<index .LabelValuesByName.none "x">>', "index of nothing"),
        ("<<slice .GroupBySlice 2 1>>", "do not ascend"),
        ('<<slice "é" 1>>', "cut a character"),
        ("<<len 3>>", "len of a whole number"),
        ("<<len>>", "len takes 1 arguments, got 0"),
        ("<<and>>", "takes at least 1"),
        ("<<nil>>", "nil is not a command"),
        ("<<$x = 1>>", r"the variable \$x is not set here"),
        ('<<template "x">>', "the template 'x' is not defined"),
        ('<<eq 1 "a">>', "cannot be compared"),
        ("<<lt true false>>", "have no order"),
        ("<<eq .GroupBySlice .GroupBySlice>>", "a list cannot be compared"),
        ("<<range .Series>><<end>>", "cannot go over a string"),
        ('<<printf "%d" .Series>>', "%d cannot show a string"),
        ('<<printf "%s">>', "no value is left for %s"),
        ('<<printf "x" 1>>', "1 values more than"),
        ('<<printf "%U" 1>>', "'%U' is not supported"),
        ('<<printf "%[1]s" "a">>', "not supported"),
        ('<<printf "%99999d" 1>>', "more than 1000"),
        ("<<printf 1>>", "the format is a whole number"),
    ],
)
def test_a_template_that_fails_in_execution_is_an_error(text: str, message: str) -> None:
    template = parse_template(text)
    with pytest.raises(TemplateError, match=message):
        execute(template, DATA)


# Attempts to keep the executor busy, or its memory full.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<<range 1000000000>><<end>>", "more than 20000 steps"),
        ("<<range 300>><<range 300>><<range 300>><<end>><<end>><<end>>", "more than 20000 steps"),
        ('<<$x := "0123456789">><<range 99>><<$x = print $x $x>><<end>>', "more than 20000 steps"),
        ('<<$x := printf "%1000s" "">><<range 9999>><<$y := len $x>><<end>>', "more than 20000 steps"),
        ('<<range 2000>><<printf "%1000s" "">><<end>>', "longer than 1048576"),
        ('<<define "a">><<template "a">><<end>><<template "a">>', "more than 100 levels"),
        ('<<define "a">><<template "b">><<end>><<define "b">><<template "a">><<end>><<template "a">>', "100 levels"),
        ('<<template "all" .>>', "more than 100 levels"),
        ('<<block "a" .>>x<<template "all" .>><<end>>', "more than 100 levels"),
        (
            "".join(f'<<define "{n}">><<template "{n + 1}">><<template "{n + 1}">><<end>>' for n in range(50))
            + '<<define "50">>x<<end>><<template "0">>',
            "more than 20000 steps",
        ),
    ],
)
def test_execution_is_bounded_in_steps_length_and_depth(text: str, message: str) -> None:
    template = parse_template(text, "all")
    with pytest.raises(TemplateError, match=message):
        execute(template, DATA)


def test_a_recursive_template_may_end() -> None:
    rest = '<<define "rest">><<with .>><<slice . 0 1>><<template "rest" (slice . 1)>><<end>><<end>>'
    assert render(f'{rest}<<template "rest" .Series>>') == "some_series"


_GO = json.loads(pathlib.Path(__file__).with_name("go_templates.json").read_text())


@pytest.mark.parametrize("case", _GO["cases"], ids=lambda case: case["template"])
def test_templates_agree_with_go(case: dict[str, str]) -> None:
    data = Struct({**_GO["data"], "GroupBySlice": tuple(_GO["data"]["GroupBySlice"])})
    if case.get("fails") == "read":
        with pytest.raises(TemplateError):
            parse_template(case["template"], "metrics-query")
        return
    template = parse_template(case["template"], "metrics-query")
    if "fails" in case:
        with pytest.raises(TemplateError):
            execute(template, data)
    else:
        assert execute(template, data) == case["output"]


_PIECES = [
    "<<", ">>", "<<- ", " ->>", " ", "\n", ".Series", ".", "$", "$x", ":=", "=", "|", "(", ")", ",", '"a"', "`", "'c'",
    "1", "-", "1.5e3", "if ", "else ", "end", "range ", "with ", "break", "printf ", "index ", "eq ", "/*", "*/", "nil",
    ".LabelValuesByName", ".GroupBySlice", '"%s"', "and ", "é", "{", "}", "define ", "template ", "block ",
    '"a" ', "html ", "js ",
]  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.sampled_from(_PIECES), max_size=20).map("".join))
def test_any_text_is_rendered_or_refused_with_a_line_of_it(text: str) -> None:
    try:
        line = len(render(text)) and 1
    except TemplateError as error:
        line = error.line
    assert 0 <= line <= text.count("\n") + 1


@given(st.text(st.characters(exclude_characters="<")))
def test_text_without_actions_is_unchanged(text: str) -> None:
    assert render(text) == text
