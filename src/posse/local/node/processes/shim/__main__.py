"""Started by path, isolated and without site-packages: `python -I -S .../shim/__main__.py DIR`."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Appended: nothing of ours may stand in for a module of the standard library.
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 5)))
    from posse.local.node.processes.shim.program import main

    sys.exit(main(sys.argv[1:]))
