"""The shim: it starts a container, keeps its output, ends it when told, and writes how it ended.

It is told what to do through a pipe in its directory, and rings a bell there when something has
changed. An agent that dies does not matter to it; if nobody watches over the node any more, neither
an agent nor the supervisor, it ends the container by itself: nothing is orphaned.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import traceback
from typing import Any

from posse.local.node.processes.shim import files
from posse.local.node.processes.shim.clocks import monotonic, wall
from posse.local.node.processes.shim.family import kill_descendants, reap
from posse.local.node.processes.shim.recording import Recorder
from posse.local.node.processes.shim.warden import enter

SIGTERM, SIGKILL = 15, 9
LOST_AFTER = 5.0  # how long output may still come after the container's end
LOOK = 1.0
LONGEST_FAREWELL = 10.0
START_ERROR = 128
KILLED = 137
PRE_STOP, POST_START = 1, 2
MOST_DESCRIPTORS = 65_536


def main(arguments: list[str]) -> int:
    """Returns in the process that was started once the shim itself is on its way."""
    (directory,) = arguments
    # Whatever started us may have left some open: a shim that held them would hold up others.
    os.closerange(3, MOST_DESCRIPTORS)
    os.chdir(directory)
    launch = files.read_json(files.LAUNCH)
    if launch is None:
        print(f"{directory} holds nothing to launch", file=sys.stderr)
        return 1
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        with os.fdopen(reading, "rb") as told:
            complaint = told.read()
        if complaint != b"ok":
            print(complaint.decode("utf-8", "replace") or "the shim ended", file=sys.stderr)
            return 1
        return 0
    os.close(reading)
    os.setsid()
    _redirect()
    try:
        held = files.lock(files.LOCK)
        if os.path.exists(files.EXIT):  # an agent has given this attempt up
            os._exit(0)
        shim = Shim(launch)
        os.write(writing, b"ok")
        os.close(writing)
        shim.run()
        os.close(held)
    except BaseException:  # noqa: BLE001 - the last words of a process that nobody waits for
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _redirect() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    errors = os.open(files.ERRORS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (null, 1), (errors, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(errors)


class Shim:
    def __init__(self, launch: dict[str, Any]) -> None:
        self._launch = launch
        self._recorder = Recorder(files.LOG, largest=launch["log_bytes"], count=launch["log_files"])
        for name in (files.CONTROL, files.BELL):
            files.make_fifo(name)
        # Both ends are ours, so that no end is ever seen but our own.
        self._control = os.open(files.CONTROL, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._bell = os.open(files.BELL, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._watch = _Watch(launch["lifeline"], launch["orphan_after"])
        self._state: dict[str, Any] = {"shim": os.getpid(), "warden": 0, "main": 0}
        self._started_at = wall()
        self._unread = b""
        self._told = b""
        self._channel: socket.socket | None = None
        self._streams: dict[int, bytes] = {}
        self._waiting = select.poll()
        self._term_at: float | None = None  # when SIGTERM goes out, after a preStop hook
        self._kill_at: float | None = None
        self._stopping = False
        self._over: dict[str, Any] | None = None
        self._drained_by = 0.0
        self._reason = ""
        self._message = ""

    def run(self) -> None:
        self._begin()
        while not (self._over is not None and self._drained()):
            for descriptor, _ in self._waiting.poll(int(self._pause() * 1000) + 1):
                if descriptor in self._streams:
                    self._copy(descriptor)
                elif descriptor == self._control:
                    self._listen()
                elif self._channel is not None and descriptor == self._channel.fileno():
                    self._hear()
            self._tick()
        self._finish()

    def _begin(self) -> None:
        if sys.platform == "linux":
            from posse.local.node.processes.shim.kernel import become_subreaper

            become_subreaper()
        ours, theirs = socket.socketpair()
        pipes = {b"stdout": os.pipe(), b"stderr": os.pipe()}
        pid = os.fork()
        if pid == 0:
            self._leave(theirs, [pair[1] for pair in pipes.values()])
        theirs.close()
        for stream, (reading, writing) in pipes.items():
            os.close(writing)
            self._streams[reading] = stream
            self._waiting.register(reading, select.POLLIN)
        self._channel = ours
        self._waiting.register(ours, select.POLLIN)
        self._waiting.register(self._control, select.POLLIN)
        self._state["warden"] = pid
        self._tell()

    def _leave(self, channel: socket.socket, outputs: list[int]) -> None:
        """The forked child: it keeps nothing of the shim's, above all not its lock."""
        try:
            kept = sorted([channel.fileno(), *outputs])
            low = 3
            for descriptor in kept:
                os.closerange(low, descriptor)
                low = descriptor + 1
            os.closerange(low, MOST_DESCRIPTORS)
            enter(self._launch, channel, outputs[0], outputs[1])
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        os._exit(1)

    # What comes in.

    def _copy(self, descriptor: int) -> None:
        data = os.read(descriptor, 65_536)
        if data:
            self._recorder.write(self._streams[descriptor], data)
            return
        self._waiting.unregister(descriptor)
        del self._streams[descriptor]
        os.close(descriptor)

    def _listen(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._told += os.read(self._control, 65_536)
        *lines, self._told = self._told.split(b"\n")
        for line in lines:
            try:
                order = json.loads(line)
                if "stop" in order:
                    self._stop(float(order["stop"]), order.get("reason", ""), order.get("why", ""))
                elif "run" in order or "abandon" in order:
                    self._send(order)
            except (ValueError, TypeError):
                traceback.print_exc()

    def _hear(self) -> None:
        assert self._channel is not None
        data = b""
        with contextlib.suppress(OSError):
            data = self._channel.recv(65_536)
        if not data:
            self._waiting.unregister(self._channel)
            if self._over is None:
                # The warden was killed; whoever it left behind is a child of ours now.
                self._end(KILLED, self._reason or "Error", self._message)
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._understand(json.loads(line))

    def _understand(self, words: dict[str, Any]) -> None:
        if "warden" in words:
            self._state["warden"] = words["warden"]
            self._tell()
        elif "started" in words:
            self._started_at = wall()
            self._state.update(main=words["started"], started_at=self._started_at)
            self._tell()
            if hook := self._launch.get("post_start"):
                self._send({"run": POST_START, "argv": hook})
        elif "failed" in words:
            self._end(START_ERROR, "StartError", words["failed"])
        elif "exited" in words:
            code = words["exited"]
            self._end(code, self._reason or ("Error" if code else "Completed"), self._message)
        elif "ran" in words:
            self._ran(words["ran"], words["code"])

    def _ran(self, number: int, code: int) -> None:
        if number == PRE_STOP:
            self._term_at = monotonic()
        elif number == POST_START:
            if code:
                self._stop(0.0, "PostStartHookError", f"the postStart hook ended with {code}")
        else:
            with contextlib.suppress(OSError):
                files.write_json(f"run-{number}.json", {"code": code}, durable=False)
            self._ring()

    # What is done about it.

    def _stop(self, grace: float, reason: str = "", why: str = "") -> None:
        now = monotonic()
        if reason and not self._reason:
            self._reason, self._message = reason, why
        # A second order may only shorten what is left.
        self._kill_at = now + grace if self._kill_at is None else min(self._kill_at, now + grace)
        if self._stopping:
            return
        self._stopping = True
        hook = self._launch.get("pre_stop")
        if hook and grace > 0:
            if "sleep" in hook:
                self._term_at = now + min(float(hook["sleep"]), grace)
                return
            self._send({"run": PRE_STOP, "argv": hook["argv"]})
            return
        if grace > 0:
            self._term_at = now

    def _tick(self) -> None:
        reap()
        now = monotonic()
        if self._over is None:
            if self._term_at is not None and now >= self._term_at:
                self._term_at = None
                self._send({"signal": SIGTERM})
            if self._kill_at is not None and now >= self._kill_at:
                self._kill_at = now + LOOK
                self._send({"signal": SIGKILL})
            if self._watch.lost(now) and not self._stopping:
                grace = min(float(self._launch["grace"]), LONGEST_FAREWELL)
                self._stop(grace, "NodeLost", "nobody watched over this node any more")

    def _pause(self) -> float:
        now = monotonic()
        wishes = [self._watch.pause()]
        wishes += [at - now for at in (self._term_at, self._kill_at) if at is not None]
        if self._over is not None:
            wishes.append(0.05)
        return max(0.0, min(wishes))

    def _end(self, code: int, reason: str, message: str) -> None:
        if self._over is not None:
            return
        kill_descendants()
        self._over = {
            "code": code,
            "reason": reason,
            "message": message,
            "started_at": self._started_at,
            "finished_at": wall(),
        }
        self._drained_by = monotonic() + LOST_AFTER

    def _drained(self) -> bool:
        return not self._streams or monotonic() >= self._drained_by

    def _finish(self) -> None:
        self._recorder.close()
        assert self._over is not None
        while True:
            try:
                files.write_json(files.EXIT, self._over)
            except OSError:
                # A full disk: the end is told when there is room, or by the lock alone.
                traceback.print_exc()
                if self._watch.lost(monotonic()):
                    return
                select.select([], [], [], LOOK)
            else:
                return

    def _send(self, order: dict[str, Any]) -> None:
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.sendall(json.dumps(order).encode() + b"\n")

    def _tell(self) -> None:
        with contextlib.suppress(OSError):
            files.write_json(files.STATE, self._state, durable=False)
        self._ring()

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._bell, b".")


class _Watch:
    """Whether anybody watches over the node: each who does holds a pipe open for writing."""

    def __init__(self, path: str, patience: float) -> None:
        self._patience = patience
        self._alone_since: float | None = None
        self._descriptor: int | None = None
        self._looked = 0.0
        with contextlib.suppress(OSError):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def pause(self) -> float:
        return LOOK * 2

    def lost(self, now: float) -> bool:
        if now - self._looked >= LOOK:
            self._looked = now
            if self._watched():
                self._alone_since = None
            elif self._alone_since is None:
                self._alone_since = now
        return self._alone_since is not None and now - self._alone_since >= self._patience

    def _watched(self) -> bool:
        if self._descriptor is None:
            return False
        looking = select.poll()
        looking.register(self._descriptor, select.POLLIN)
        return not any(event & select.POLLHUP for _, event in looking.poll(0))
