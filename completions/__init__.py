"""Completion of both programs' command lines in bash, zsh and fish: scripts that shtab makes from the tables of flags.

    python -m completions     # writes the scripts beside the code, from the checkout

The wheel installs the scripts and none of this code (`shared-data` in pyproject.toml).
"""
