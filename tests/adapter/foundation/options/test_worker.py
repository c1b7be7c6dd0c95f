"""How long a worker serves after SIGTERM: a time that it can wait for."""

from __future__ import annotations

import pytest

from adapter.foundation.options.worker import worker_flags
from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from adapter.foundation.service.flags.table import CommandFlags
from recommender.commands.run.flags import RUN

SERVES = CommandFlags(program="x", summary="", flags=worker_flags("Serving"))


@pytest.mark.parametrize(("command", "more"), [(SERVES, ()), (RUN, ("--config=x",))], ids=["worker", "run"])
@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0.0), ("5s", 5.0), ("24h", 86_400.0), ("-1s", None), ("292y", None), ("9" * 400, None)]
)
def test_a_shutdown_delay_is_between_zero_and_a_day(
    command: CommandFlags, more: tuple[str, ...], text: str, seconds: float | None
) -> None:
    if seconds is None:
        with pytest.raises(UsageError, match="--shutdown-delay: "):
            parse_flags(command, (*more, f"--shutdown-delay={text}"), {})
    else:
        assert parse_flags(command, (*more, f"--shutdown-delay={text}"), {}).seconds("shutdown-delay") == seconds
