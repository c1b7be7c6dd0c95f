"""Records of past polls: decisions for the page, nodes and pods for replays."""
