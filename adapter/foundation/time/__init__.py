"""Clock, back-off, limits and due times: the arithmetic of waiting, for every program."""
