from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.service.flags.parsing import HelpRequested, UsageError, flags_or_exit, parse_flags
from adapter.foundation.service.flags.table import (
    ADDRESS,
    DURATION,
    INTEGER,
    OBJECT,
    PATH,
    PORT,
    TEXT,
    CommandFlags,
    Flag,
    FlagValues,
    Ignored,
    Refused,
    Repeat,
    in_group,
    one_of,
    switch,
)
from adapter.foundation.service.server.addresses import Address
from adapter.foundation.service.version import program_version

COMMAND = CommandFlags(
    program="tidewatch-adapter serve",
    summary="Serve the metrics APIs.",
    flags=(
        Flag("config", PATH, "Rule files.", repeat=Repeat.EACH, group="Rules"),
        *in_group(
            "Prometheus",
            Flag("prometheus-url", TEXT, "Where to ask.", default="https://localhost"),
            Flag("prometheus-verb", one_of("GET", "POST"), default="GET"),
            Flag("prometheus-header", TEXT, repeat=Repeat.EACH),
        ),
        Flag("refresh-interval", DURATION, "How often to ask anew.", default=10),
        Flag("secure-port", PORT, default=6443),
        Flag("plain-bind-address", ADDRESS, default=Address("", 9180)),
        switch("pin-cpu"),
        Flag("max-demand", INTEGER, default=2000),
        Flag("allowed-names", TEXT, repeat=Repeat.COMMAS),
        Flag("state", PATH),
        Flag("v", INTEGER, default=0, short="v"),
        switch("disable-http2", state=Ignored("HTTP/2 is not spoken here")),
        Flag("audit-log-path", TEXT, state=Refused("the API server writes the audit log")),
    ),
)


def parse(*arguments: str, **environment: str) -> FlagValues:
    return parse_flags(COMMAND, arguments, environment)


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--prometheus-url=http://a:1/?x=y"], "prometheus-url", "http://a:1/?x=y"),
        (["--prometheus-url", "http://a"], "prometheus-url", "http://a"),
        (["--prometheus_url", "http://a"], "prometheus-url", "http://a"),
        (["--prometheus-url="], "prometheus-url", ""),
        (["--prometheus-url=a", "--prometheus-url=b"], "prometheus-url", "b"),
        (["--prometheus-url", "--odd"], "prometheus-url", "--odd"),
        ([], "prometheus-url", "https://localhost"),
        (["--pin-cpu"], "pin-cpu", True),
        (["--pin-cpu=false"], "pin-cpu", False),
        (["--pin-cpu=T"], "pin-cpu", True),
        (["--refresh-interval=1m30s"], "refresh-interval", 90.0),
        (["--refresh-interval", "500ms"], "refresh-interval", 0.5),
        (["--secure-port=0"], "secure-port", 0),
        (["--plain-bind-address=:0"], "plain-bind-address", Address("", 0)),
        (["--plain-bind-address=[::1]:80"], "plain-bind-address", Address("::1", 80)),
        (["--config=a.yaml", "--config", "b"], "config", (Path("a.yaml"), Path("b"))),
        ([], "config", ()),
        (["--prometheus-header=a=b,c", "--prometheus-header=d=e"], "prometheus-header", ("a=b,c", "d=e")),
        (["--allowed-names=a, b", "--allowed-names=c"], "allowed-names", ("a", "b", "c")),
        (["--allowed-names="], "allowed-names", ()),
        (["--max-demand=0x1F"], "max-demand", 31),
        (["--max-demand=010"], "max-demand", 8),
        (["--max-demand=-0o1_0"], "max-demand", -8),
        (["--max-demand=0b11"], "max-demand", 3),
        (["--max-demand=+1_000"], "max-demand", 1000),
        (["--max-demand=0"], "max-demand", 0),
        (["--max-demand= 7 "], "max-demand", 7),
        (["--version=false", "--pin-cpu"], "pin-cpu", True),
        (["-v=4"], "v", 4),
        (["-v", "4"], "v", 4),
        (["-v4"], "v", 4),
        (["--v=4"], "v", 4),
        ([], "state", None),
    ],
)
def test_flags_are_read_as_go_reads_them(arguments: list[str], name: str, value: object) -> None:
    assert parse(*arguments).values[name] == value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--refresh-intervall=5s"], "unknown flag --refresh-intervall: did you mean --refresh-interval?"),
        (["--zzz"], "unknown flag --zzz: see --help"),
        (["--disable-http"], "unknown flag --disable-http: see --help"),
        (["--audit-log-pat=x"], "unknown flag --audit-log-pat: see --help"),
        (["-pin-cpu"], "unknown flag -pin-cpu: did you mean --pin-cpu?"),
        (["-x"], "unknown flag -x: see --help"),
        (["--refresh-interval"], "--refresh-interval needs a value: write --refresh-interval=DURATION"),
        (["--refresh-interval=5"], "--refresh-interval: '5' is not a duration"),
        (["--secure-port=70000"], "--secure-port: '70000' is not a port: write a number from 0 to 65535"),
        (["--secure-port=٣"], "is not a port"),
        (["--prometheus-verb=PUT"], "--prometheus-verb: 'PUT' is not allowed: write GET or POST"),
        (["--pin-cpu=yes"], "--pin-cpu: 'yes' is not a boolean: write true or false"),
        (["--max-demand=many"], "--max-demand: 'many' is not a whole number: write one such as 10"),
        (["--max-demand=08"], "--max-demand: '08' is not a whole number"),
        (["--max-demand=1__0"], "is not a whole number"),
        (["--max-demand=٣"], "is not a whole number"),
        (["--max-demand=" + 5000 * "9"], "is not a whole number"),
        (["--version=perhaps"], "--version: 'perhaps' is not a boolean: write true or false"),
        (["--plain-bind-address=9180"], "--plain-bind-address: '9180' has no port: write HOST:PORT or :PORT"),
        (["--plain-bind-address=[::1]"], "'[::1]' has no port: write HOST:PORT or :PORT"),
        (["--plain-bind-address=::1:80"], "write an IPv6 address in brackets, [::1]:80"),
        (["--audit-log-path=-"], "--audit-log-path is not supported: the API server writes the audit log"),
        (["--audit-log-path"], "--audit-log-path is not supported: the API server writes the audit log"),
        (["file.yaml"], "unexpected argument 'file.yaml': did you mean --config=file.yaml?"),
        (["--pin-cpu", "false"], "unexpected argument 'false': see --help"),
    ],
)
def test_the_error_for_a_wrong_command_line_is_one_line_that_says_what_to_write(
    arguments: list[str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_surplus_word_is_not_shown_where_it_may_be_a_part_of_a_secret() -> None:
    header = Flag("header", TEXT, repeat=Repeat.EACH, may_hold_secret=True)
    command = CommandFlags(program="check", summary="", flags=(header,))
    with pytest.raises(UsageError) as caught:
        parse_flags(command, ["--header", "Authorization=Bearer", "secret"], {})
    assert "secret" not in str(caught.value)
    assert "quote the value of --header" in str(caught.value)
    with pytest.raises(UsageError, match="unexpected argument 'secret': see --help"):
        parse_flags(command, ["secret"], {})


def test_a_kind_and_a_name_as_two_arguments_get_a_hint_to_join_them() -> None:
    command = CommandFlags(program="kubectl-tidewatch why", summary="", flags=(), arguments=(OBJECT,))
    with pytest.raises(UsageError, match="unexpected argument 'gateway': did you mean hpa/gateway\\?"):
        parse_flags(command, ["hpa", "gateway"], {})


def test_the_environment_sets_flags_and_the_command_line_wins() -> None:
    environment = {"TIDEWATCH_FLAG_REFRESH_INTERVAL": "5s", "TIDEWATCH_FLAG_PIN_CPU": "true", "HOME": "/"}
    values = parse("--refresh-interval=7s", **environment)
    assert (values.seconds("refresh-interval"), values.boolean("pin-cpu")) == (7.0, True)
    assert values.given == {"refresh-interval", "pin-cpu"}


def test_a_repeated_flag_takes_one_value_from_each_line_of_the_environment() -> None:
    environment = {"TIDEWATCH_FLAG_CONFIG": "a.yaml\nb.yaml"}
    assert parse(**environment).paths("config") == (Path("a.yaml"), Path("b.yaml"))
    assert parse("--config=c.yaml", **environment).paths("config") == (Path("c.yaml"),)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"TIDEWATCH_FLAG_REFRESH_INTERVALL": "5s"}, "did you mean TIDEWATCH_FLAG_REFRESH_INTERVAL?"),
        ({"TIDEWATCH_FLAG_PIN_CPU": "maybe"}, "TIDEWATCH_FLAG_PIN_CPU: 'maybe' is not a boolean"),
        ({"TIDEWATCH_FLAG_AUDIT_LOG_PATH": "-"}, "TIDEWATCH_FLAG_AUDIT_LOG_PATH is not supported"),
    ],
)
def test_the_error_for_a_wrong_environment_names_the_variable(environment: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        parse(**environment)


def test_flags_without_effect_are_accepted_with_one_warning_each() -> None:
    values = parse("--disable-http2", "--disable-http2=true")
    assert values.warnings == ("--disable-http2 has no effect: HTTP/2 is not spoken here",)
    assert parse().warnings == ()


def test_arguments_after_two_dashes_are_not_flags() -> None:
    command = CommandFlags(program="p", summary="", flags=COMMAND.flags, arguments=("METRIC", "OBJECT"))
    assert parse_flags(command, ["a", "--pin-cpu", "--", "--b"], {}).arguments == ("a", "--b")
    with pytest.raises(UsageError, match="OBJECT is missing"):
        parse_flags(command, ["a"], {})


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("give a rule file", "give a rule file"),
        ("Rule file. Changes take effect at once.", "rule file"),
        ("NAMESPACE/NAME of a Secret.", "NAMESPACE/NAME of a Secret"),
    ],
)
def test_a_missing_required_flag_is_an_error_that_says_what_it_is(text: str, clause: str) -> None:
    needed = Flag("config", PATH, text, repeat=Repeat.EACH, required=True)
    command = CommandFlags(program="p", summary="", flags=(needed,))
    with pytest.raises(UsageError, match=f"--config is required: {clause}$"):
        parse_flags(command, [], {})


def test_values_are_typed_where_they_are_used() -> None:
    values = parse("--state=/tmp/x", "--allowed-names=a")
    assert values.path("state") == Path("/tmp/x")
    assert values.text("prometheus-url") == "https://localhost"
    assert values.integer("max-demand") == 2000
    assert values.address("plain-bind-address") == Address("", 9180)
    assert values.texts("allowed-names") == ("a",)
    assert values.seconds("refresh-interval") == 10.0
    with pytest.raises(TypeError, match="--state is PosixPath, read as str"):
        values.text("state")


def test_help_lists_the_flags_by_group_with_their_defaults() -> None:
    with pytest.raises(HelpRequested) as caught:
        parse("--help=all")
    text = caught.value.text
    assert text.startswith(
        "Usage: tidewatch-adapter serve [flags]\n\nServe the metrics APIs.\n\nRules:\n  --config PATH"
    )
    assert "  --refresh-interval DURATION\n        How often to ask anew. (default 10s)" in text
    assert "  -v, --v NUMBER" in text
    assert "Accepted, without effect: HTTP/2 is not spoken here" in text
    assert "Not supported: the API server writes the audit log" in text


@pytest.mark.parametrize("flag", ["--version", "--version=true"])
def test_version_is_printed_with_status_0(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    with pytest.raises(SystemExit) as caught:
        flags_or_exit(COMMAND, [flag])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"tidewatch-adapter {program_version()}\n"


def test_wrong_usage_is_one_line_on_stderr_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        flags_or_exit(COMMAND, ["--zzz"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == "tidewatch-adapter: unknown flag --zzz: see --help\n"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(alphabet="-=va,.:5s[]config ", max_size=12), max_size=5))
def test_any_command_line_is_read_or_refused(arguments: list[str]) -> None:
    try:
        parse(*arguments)
    except (UsageError, HelpRequested):
        return
