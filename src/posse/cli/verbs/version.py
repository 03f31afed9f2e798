from __future__ import annotations

import platform

from posse.cli.grammar import switch
from posse.cli.options import App, verb
from posse.version import __version__


@verb("version")
@switch("--short", help="The version alone.")
def version(app: App, short: bool) -> None:
    """Print the version."""
    app.show(
        f"v{__version__}" if short else f"posse v{__version__} (Python {platform.python_version()})"
    )
