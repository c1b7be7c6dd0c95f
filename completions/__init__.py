"""What shells and `man` know of the programs: completion of command lines, and manual pages, from the tables of flags.

    python -m completions     # writes the scripts beside the code and the pages into man1/, from the checkout

shtab makes the scripts for bash, zsh and fish, docutils the pages. The wheel installs both and none of this code
(`shared-data` in pyproject.toml).
"""
