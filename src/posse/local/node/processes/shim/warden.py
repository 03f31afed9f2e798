"""The first process of a container: it starts the command, reaps orphans and leaves none behind.

With namespaces it is process 1 of the container's own; without, it is the subreaper of everything
below it. When the command ends, or when the shim is gone, however that ended, all of it is killed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import sys
from typing import Any, NoReturn

from posse.local.node.processes.shim.family import kill_descendants, reap


class Refused(Exception):
    """The command could not be started; the text is what a container runtime would say."""


class Warden:
    def __init__(
        self, launch: dict[str, Any], channel: socket.socket, out: int, err: int, *, alone: bool
    ) -> None:
        self._launch = launch
        self._channel = channel
        self._out = out
        self._err = err
        self._alone = alone  # process 1 of a namespace of its own
        self._main = 0
        self._hooks: dict[int, int] = {}  # pid -> the number under which it was asked for

    def run(self) -> NoReturn:
        reading, writing = os.pipe()
        for descriptor in (reading, writing):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._pass_on)
        try:
            self._main = self._spawn(list(self._launch["argv"]), self._out, self._err)
        except Refused as refused:
            self._say({"failed": str(refused)})
            os._exit(1)
        os.close(self._out)
        os.close(self._err)
        self._say({"started": self._main})
        waiting = select.poll()
        waiting.register(self._channel, select.POLLIN)
        waiting.register(reading, select.POLLIN)
        unread = b""
        while True:
            ready = [descriptor for descriptor, _ in waiting.poll()]
            if reading in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(reading, 4096)
                self._reap()
            if self._channel.fileno() in ready:
                data = self._channel.recv(65_536)
                if not data:
                    self._end()
                *lines, unread = (unread + data).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))

    def _obey(self, order: dict[str, Any]) -> None:
        if "signal" in order:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._main, order["signal"])
        elif "run" in order:
            null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            try:
                self._hooks[self._spawn(list(order["argv"]), null, null)] = order["run"]
            except Refused as refused:
                self._say({"ran": order["run"], "code": 127, "why": str(refused)})
            finally:
                os.close(null)
        elif "abandon" in order:
            for pid, number in self._hooks.items():
                if number == order["abandon"]:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)

    def _pass_on(self, number: int, _: object) -> None:
        if self._main:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._main, number)

    def _reap(self) -> None:
        over: int | None = None
        for pid, status in reap():
            if pid == self._main:
                over = status
            elif pid in self._hooks:
                self._say({"ran": self._hooks.pop(pid), "code": exit_code(status)})
        if over is not None:
            if not self._alone:
                kill_descendants()
            self._say({"exited": exit_code(over)})
            os._exit(0)  # and the kernel ends a namespace with its first process

    def _end(self) -> NoReturn:
        """The shim is gone: nobody is left to tell."""
        if not self._alone:
            kill_descendants()
        os._exit(1)

    def _say(self, words: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self._channel.sendall(json.dumps(words).encode() + b"\n")

    def _spawn(self, argv: list[str], out: int, err: int) -> int:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._become(argv, out, err, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as complaints:
            complaint = complaints.read()
        if complaint:
            os.waitpid(pid, 0)
            raise Refused(complaint.decode("utf-8", "replace"))
        return pid

    def _become(self, argv: list[str], out: int, err: int, complaints: int) -> NoReturn:
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((null, 0), (out, 1), (err, 2)):
                os.dup2(source, target)
            _reset_signals()
            os.umask(0o022)
            cwd = self._launch["cwd"]
            try:
                os.chdir(cwd)
            except OSError as error:
                raise Refused(f'chdir to "{cwd}" failed: {_reason(error)}') from None
            if self._launch.get("sandbox"):
                from posse.local.node.processes.shim.kernel import drop_privileges

                drop_privileges()
            _execute(argv, dict(self._launch["env"]))
        except Refused as refused:
            os.write(complaints, str(refused).encode())
        except BaseException as error:  # noqa: BLE001 - a forked child has nowhere else to go
            os.write(complaints, f'exec: "{argv[0]}": {error}'.encode())
        os._exit(127)


def _execute(argv: list[str], environment: dict[str, str]) -> NoReturn:
    """As a container runtime looks for the file and words what it did not find."""
    name = argv[0]
    if "/" in name:
        candidates = [name]
    else:
        path = environment.get("PATH") or os.defpath
        candidates = [f"{directory or '.'}/{name}" for directory in path.split(":")]
    denied = False
    for candidate in candidates:
        try:
            os.execve(candidate, argv, environment)
        except (FileNotFoundError, NotADirectoryError) as error:
            if os.path.exists(candidate):  # its interpreter is what is missing
                raise Refused(f'exec: "{name}": the interpreter that it names is missing') from None
            if "/" in name:
                raise Refused(f'exec: "{name}": stat {name}: {_reason(error)}') from None
        except PermissionError:
            # A directory that we may not look into has nothing for us.
            denied = denied or os.path.exists(candidate)
        except OSError as error:
            raise Refused(f'exec: "{name}": {_reason(error)}') from None
    if denied:
        raise Refused(f'exec: "{name}": permission denied')
    raise Refused(f'exec: "{name}": executable file not found in $PATH')


def _reason(error: OSError) -> str:
    if error.errno == errno.E2BIG:
        return "argument list too long"
    return (error.strerror or str(error)).lower()


def _reset_signals() -> None:
    """Whatever whoever started the agent had ignored, a command begins with the usual."""
    signal.set_wakeup_fd(-1)
    for number in range(1, signal.NSIG):
        with contextlib.suppress(OSError, ValueError):  # SIGKILL, SIGSTOP, and the C library's own
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def exit_code(status: int) -> int:
    """128 + signal, as shells and container runtimes count."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def enter(launch: dict[str, Any], channel: socket.socket, out: int, err: int) -> NoReturn:
    """What the shim's forked child does with the rest of its life."""
    plan = launch.get("sandbox")
    try:
        if plan:
            from posse.local.node.processes.shim import sandbox

            sandbox.detach(plan)
            pid = os.fork()
            if pid:
                channel.sendall(json.dumps({"warden": pid}).encode() + b"\n")
                os._exit(0)
            sandbox.build(plan)
        elif sys.platform == "linux":
            from posse.local.node.processes.shim.kernel import become_subreaper

            become_subreaper()
    except OSError as error:
        words = {"failed": f"the container's sandbox could not be made: {error}"}
        channel.sendall(json.dumps(words).encode() + b"\n")
        os._exit(1)
    Warden(launch, channel, out, err, alone=bool(plan)).run()
