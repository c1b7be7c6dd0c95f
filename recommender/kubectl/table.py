"""`kubectl-tidewatch`, which kubectl runs as `kubectl tidewatch`: its commands."""

from __future__ import annotations

from typing import Final

from adapter.foundation.service.flags.program import Program, ProgramCommand
from recommender.kubectl.program import PROGRAM


def _load(name: str) -> ProgramCommand:
    """Return a command; only the command that runs is imported."""
    if name == "why":
        from recommender.kubectl.why.command import WHY, why  # noqa: PLC0415 - see above

        return ProgramCommand(WHY, why)
    if name == "what-if":
        from recommender.kubectl.what_if import WHAT_IF, what_if  # noqa: PLC0415 - see above

        return ProgramCommand(WHAT_IF, what_if)
    if name == "doctor":
        from recommender.kubectl.doctor import DOCTOR, doctor  # noqa: PLC0415 - see above

        return ProgramCommand(DOCTOR, doctor)
    raise AssertionError(name)


COMMANDS: Final = Program(
    name=PROGRAM,
    summary="Why an HPA, a workload or a pod is as it is: the plugin of kubectl.",
    commands={
        "why": "explain the size of an HPA's target, of a workload, or a pod",
        "what-if": "calculate recommendations as if the cluster were different",
        "doctor": "check the adapter and the recommender for common faults",
    },
    load=_load,
)
