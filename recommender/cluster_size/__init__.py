"""Where plugins of node groups find their types: names that packages of others import, and that do not move."""
