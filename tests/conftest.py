from __future__ import annotations

import signal

# A shell that starts the tests in the background has told them to ignore interrupts, and so all
# their children; tests of what an interrupt does need the usual.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
