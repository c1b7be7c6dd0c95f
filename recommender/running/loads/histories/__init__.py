"""The past load of each target: downloaded in pieces, held on a grid, and stored in files."""
