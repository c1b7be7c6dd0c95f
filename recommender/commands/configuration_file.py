"""The configuration file of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.files.file_contents import FilesError, is_folder, read_each, sole_content
from adapter.foundation.service.flags.parsing import exit_for_usage
from adapter.foundation.sources.kubernetes.credentials.access import pod_namespace
from recommender.commands.program import PROGRAM
from recommender.configuration.own_namespace import with_own_namespace
from recommender.configuration.reading import ConfigurationFileError, read_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration


def configuration_or_exit(
    values: FlagValues, program: str = PROGRAM, *, for_backtest: bool = False
) -> tuple[Path, Configuration]:
    """Return the file that `--config` names, and its configuration; messages begin with the program's name.

    With `for_backtest`, entries may lack keys for which a backtest has other sources (`read_configuration`).

    If the file is refused, the process ends with status 2 and one line on stderr for each problem.
    """
    path = values.path("config")
    if path is None:
        exit_for_usage(program, "--config is empty: name the configuration file")
    if is_folder(path):
        exit_for_usage(program, f"{path}: this is a folder: name the configuration file in it")
    try:
        content = sole_content(path, read_each([path]))
        configuration = read_configuration(content.text, str(content.path), for_backtest=for_backtest)
        return path, with_own_namespace(configuration, pod_namespace())
    except FilesError as error:
        exit_for_usage(program, str(error))
    except ConfigurationFileError as error:
        exit_for_usage(program, *map(str, error.problems))
