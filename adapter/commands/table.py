"""The commands of `tidewatch-adapter`."""

from __future__ import annotations

from typing import Final

from adapter.commands.program import PROGRAM
from adapter.foundation.service.flags.program import Program, ProgramCommand


def _load(name: str) -> ProgramCommand:  # noqa: PLR0911 - one for each command
    """Return a command; only the selected command is imported."""
    if name == "serve":
        from adapter.commands.serve.command import serve  # noqa: PLC0415 - see above
        from adapter.commands.serve.flags import SERVE  # noqa: PLC0415 - see above

        return ProgramCommand(SERVE, serve)
    if name == "explain":
        from adapter.commands.explain.command import EXPLAIN, explain  # noqa: PLC0415 - see above

        return ProgramCommand(EXPLAIN, explain)
    if name == "check":
        from adapter.commands.check.command import CHECK, check  # noqa: PLC0415 - see above

        return ProgramCommand(CHECK, check)
    if name == "init":
        from adapter.commands.init.command import INIT, init  # noqa: PLC0415 - see above

        return ProgramCommand(INIT, init)
    if name == "doctor":
        from adapter.commands.doctor.command import DOCTOR, doctor  # noqa: PLC0415 - see above

        return ProgramCommand(DOCTOR, doctor)
    if name == "nodes":
        from adapter.commands.nodes.command import nodes  # noqa: PLC0415 - see above
        from adapter.commands.nodes.flags import NODES  # noqa: PLC0415 - see above

        return ProgramCommand(NODES, nodes)
    if name == "readiness":
        from adapter.commands.readiness import READINESS, readiness  # noqa: PLC0415 - see above

        return ProgramCommand(READINESS, readiness)
    if name == "schema":
        from adapter.foundation.options.schema import DescribedFile, schema_command  # noqa: PLC0415 - see above
        from adapter.metrics.rulebook.parsing.rule_file import RULE_FILE  # noqa: PLC0415 - see above
        from adapter.nodes.configuration.reading import SCHEDULING  # noqa: PLC0415 - see above

        files = {
            "scheduling": DescribedFile("scheduling configuration", SCHEDULING),
            "rules": DescribedFile("rule file", RULE_FILE),
        }
        return schema_command(PROGRAM, files)
    raise AssertionError(name)


COMMANDS: Final = Program(
    name=PROGRAM,
    summary="Prometheus metrics for the Kubernetes metrics APIs.",
    commands={
        "serve": "serve the metrics APIs from Prometheus",
        "explain": "explain why a metric has, or lacks, a value",
        "init": "write rules and HPAs for what Prometheus holds",
        "check": "report errors in rule files, and what the rules would serve",
        "doctor": "check an installation for common faults",
        "nodes": "serve the load of nodes to schedulers and the descheduler",
        "readiness": "answer the readiness probe of a pod with a limit of connections",
        "schema": "print the JSON Schema of configuration or rule files",
    },
    load=_load,
)
