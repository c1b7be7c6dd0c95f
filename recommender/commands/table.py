"""`tidewatch-recommender`: its commands."""

from __future__ import annotations

from typing import Final

from adapter.foundation.service.flags.program import Program, ProgramCommand
from recommender.commands.program import PROGRAM


def _load(name: str) -> ProgramCommand:  # noqa: PLR0911 - one for each command
    """Return the command with this name; only its module is imported."""
    if name == "run":
        from recommender.commands.run.command import run  # noqa: PLC0415 - see above
        from recommender.commands.run.flags import RUN  # noqa: PLC0415 - see above

        return ProgramCommand(RUN, run)
    if name == "backtest":
        from recommender.commands.backtest.command import backtest  # noqa: PLC0415 - see above
        from recommender.commands.backtest.flags import BACKTEST  # noqa: PLC0415 - see above

        return ProgramCommand(BACKTEST, backtest)
    if name == "doctor":
        from recommender.commands.doctor.command import DOCTOR, doctor  # noqa: PLC0415 - see above

        return ProgramCommand(DOCTOR, doctor)
    if name == "init":
        from recommender.commands.init.command import INIT, init  # noqa: PLC0415 - see above

        return ProgramCommand(INIT, init)
    if name == "recommend":
        from recommender.commands.recommend.command import RECOMMEND, recommend  # noqa: PLC0415 - see above

        return ProgramCommand(RECOMMEND, recommend)
    if name == "replay":
        from recommender.commands.replay.command import replay  # noqa: PLC0415 - see above
        from recommender.commands.replay.flags import REPLAY  # noqa: PLC0415 - see above

        return ProgramCommand(REPLAY, replay)
    if name == "schema":
        from adapter.foundation.options.schema import DescribedFile, schema_command  # noqa: PLC0415 - see above
        from recommender.configuration.reading import CONFIGURATION  # noqa: PLC0415 - see above
        from recommender.shapes.catalogue import CATALOGUE  # noqa: PLC0415 - see above

        files = {
            "configuration": DescribedFile("recommender configuration", CONFIGURATION),
            "shapes": DescribedFile("catalogue of machine shapes", CATALOGUE),
        }
        return schema_command(PROGRAM, files)
    if name == "sizes":
        from recommender.commands.sizes.command import sizes  # noqa: PLC0415 - see above
        from recommender.commands.sizes.flags import SIZES  # noqa: PLC0415 - see above

        return ProgramCommand(SIZES, sizes)
    return _load_replacement(name)


def _load_replacement(name: str) -> ProgramCommand:
    """Return the command that replaces another program; only its module is imported."""
    if name == "cpva":
        from recommender.commands.cpva.command import cpva  # noqa: PLC0415 - see above
        from recommender.commands.cpva.flags import CPVA  # noqa: PLC0415 - see above

        return ProgramCommand(CPVA, cpva)
    if name == "expander":
        from recommender.commands.expander.command import expander  # noqa: PLC0415 - see above
        from recommender.commands.expander.flags import EXPANDER  # noqa: PLC0415 - see above

        return ProgramCommand(EXPANDER, expander)
    if name == "pod-nanny":
        from recommender.commands.pod_nanny.command import pod_nanny  # noqa: PLC0415 - see above
        from recommender.commands.pod_nanny.flags import POD_NANNY  # noqa: PLC0415 - see above

        return ProgramCommand(POD_NANNY, pod_nanny)
    if name == "proportional":
        from recommender.commands.proportional.command import proportional  # noqa: PLC0415 - see above
        from recommender.commands.proportional.flags import PROPORTIONAL  # noqa: PLC0415 - see above

        return ProgramCommand(PROPORTIONAL, proportional)
    raise AssertionError(name)


COMMANDS: Final = Program(
    name=PROGRAM,
    summary="How big a Kubernetes cluster and its workloads should be, and why.",
    commands={
        "init": "write a configuration that works, from what Prometheus holds",
        "run": "decide repeatedly, publish recommendations, and scale targets",
        "recommend": "calculate recommendations once, show all steps, write nothing",
        "backtest": "replay recorded load: forecasts beside headroom at equal cost",
        "replay": "replay recorded nodes and pods: what each policy costs",
        "sizes": "show what each container should request, from what it used",
        "doctor": "check an installation for common faults, and say how to fix each",
        "expander": "tell Cluster Autoscaler which node group should grow",
        "proportional": "replace cluster-proportional-autoscaler, with its command line",
        "cpva": "replace cluster-proportional-vertical-autoscaler",
        "pod-nanny": "replace addon-resizer, with its command line",
        "schema": "print the JSON Schema of the configuration file or of shapes",
    },
    load=_load,
)
