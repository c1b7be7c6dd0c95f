"""The entry point of `tidewatch-adapter`."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.foundation.service.runtime.signals import end_at_signals


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; raises SystemExit if the exit status is not 0."""
    end_at_signals()
    # The modules below take most of the time until a command runs.
    from adapter.commands.table import COMMANDS  # noqa: PLC0415 - see above
    from adapter.foundation.service.flags.program import run_command_line  # noqa: PLC0415 - see above

    run_command_line(COMMANDS, arguments)
