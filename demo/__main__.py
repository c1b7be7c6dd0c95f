"""The entry point of `make demo`: Ctrl-C ends it silently while its modules are loaded, which takes a second."""

from __future__ import annotations

import sys

from adapter.foundation.service.runtime.signals import end_at_signals

if __name__ == "__main__":
    end_at_signals()
    from demo.command import main

    sys.exit(main())
