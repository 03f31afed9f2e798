"""Exit codes and the one line that goes with each.

0 ok; 1 refused, or the job failed; 2 usage; 3 not found; 4 timed out; 5 no answer or not
authorised; 130 interrupted.
"""

from __future__ import annotations

import click

from posse.client.errors import JobNotFound, NotAllowed, PosseError, TimedOut
from posse.kube.config import ConfigError
from posse.kube.errors import ApiError, Forbidden, NotFound, Unauthorized, Unreachable
from posse.local.supervisor.errors import ClusterError


def exit_code_of(error: BaseException) -> int:
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case click.Abort() | KeyboardInterrupt():
            return 130
        case click.UsageError():
            return 2
        case JobNotFound() | NotFound():
            return 3
        case TimedOut() | TimeoutError():
            return 4
        case Unreachable() | Unauthorized() | Forbidden() | NotAllowed() | ConfigError():
            return 5
    return 1


def sentence_of(error: BaseException) -> str:
    match error:
        case click.exceptions.Exit() | click.Abort() | KeyboardInterrupt():
            return ""
        case click.UsageError():
            return _usage(error)
        case click.ClickException():
            return one_line(error.format_message())
        case Unreachable():
            return one_line(f"no answer from the cluster: {error}; is it up? (`posse status`)")
        case Unauthorized():
            return one_line(f"the cluster does not accept these credentials: {error.message}")
        case ApiError():
            return one_line(error.message)
        case ClusterError() if error.log:
            log = (f"    {printable(line)}" for line in error.log)
            return "\n".join([one_line(str(error)), *log])
        case PosseError() | ConfigError() | ClusterError() | OSError():
            return one_line(str(error))
    return one_line(
        f"internal error: {type(error).__name__}: {error}"
        " (run again with --loglevel=debug to see where)"
    )


def _usage(error: click.UsageError) -> str:
    message = one_line(error.format_message())
    if type(error) is click.UsageError or error.ctx is None:
        return message  # one of ours: it already says what to write
    return f"{message} (see `{error.ctx.command_path} --help`)"


def one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Nothing that was typed, or that a server said, may give orders to the terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
