"""The load of the past of each target: downloaded in pieces, held on a grid, and stored in files."""
