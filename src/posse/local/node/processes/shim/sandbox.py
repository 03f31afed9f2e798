"""A container's own view of the machine, made of mounts inside namespaces of its own.

The root is a fresh directory of the container. The host's top-level directories are bound into it
read-only; /tmp, /root, /run, /dev, /dev/shm and /proc are its own. What nobody may see is covered,
and then volumes are mounted where the container wants them. All of this happens as a user who is
powerful inside these namespaces only, and that power is gone before the command runs, so that no
mount can be taken away again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import socket
import stat
from typing import Any

from posse.local.node.processes.shim import kernel
from posse.local.node.processes.shim.kernel import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
)

_PRIVATE = ("dev", "lost+found", "proc", "root", "run", "tmp")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
# Root on the host is also the owner of these files, whatever its capabilities.
_READ_ONLY = ("bus", "fs", "irq", "sys", "sysrq-trigger")
_COVERED = ("kcore", "keys", "latency_stats", "timer_list", "scsi")
_FLAGS = {
    "ro": MS_RDONLY,
    "nosuid": MS_NOSUID,
    "nodev": MS_NODEV,
    "noexec": MS_NOEXEC,
    "noatime": kernel.MS_NOATIME,
    "nodiratime": kernel.MS_NODIRATIME,
    "relatime": kernel.MS_RELATIME,
}
_OLD = "/.posse-old"


def detach(plan: dict[str, Any]) -> None:
    """Leave the host's namespaces; the next child is process 1 of the new ones."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(
        kernel.CLONE_NEWUSER
        | kernel.CLONE_NEWNS
        | kernel.CLONE_NEWUTS
        | kernel.CLONE_NEWIPC
        | kernel.CLONE_NEWPID
    )
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{plan['uid']} {uid} 1")
    _write("/proc/self/gid_map", f"{plan['gid']} {gid} 1")


def build(plan: dict[str, Any]) -> None:
    """Make the container's root and move into it. OSError says what could not be done."""
    os.umask(0o022)
    mount("none", "/", flags=MS_REC | kernel.MS_SLAVE)
    root = plan["root"]
    # The new root is assembled outside the old tree, so that no bind can contain itself.
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")
    for name in ("new", "old"):
        os.mkdir(f"{root}/{name}")
    kernel.pivot_root(root, f"{root}/old")
    os.chdir("/")
    mount(f"/old{root}", "/new", flags=MS_BIND)
    _bind_host("/old", "/new")
    _make_proc("/new/proc")
    _make_devices("/old/dev", "/new/dev", plan["devices"])
    _own(f"/old{plan['tmp']}", "/new/tmp")
    for name in ("root", "run"):
        os.mkdir(f"/new/{name}", 0o755)
    sources = [_open("/old", f"{bind['base']}/{bind['sub']}") for bind in plan["binds"]]
    revealed = [(path, os.open(f"/old{path}", os.O_PATH)) for path in plan["revealed"]]
    os.mkdir(f"/new{_OLD}")
    kernel.pivot_root("/new", f"/new{_OLD}")
    os.chdir("/")
    # From here on, paths and the links in them mean what the container will see.
    for path, source in revealed:
        if not _is(source, path):
            _bind(source, path, read_only=True)
    for path in plan["hidden"]:
        _cover(path)
    for bind, source in zip(plan["binds"], sources, strict=True):
        if not (bind.get("unless_there") and os.path.isdir(bind["target"])):
            _bind(source, bind["target"], read_only=bind["read_only"])
    for source in [*sources, *(source for _, source in revealed)]:
        os.close(source)
    kernel.unmount(_OLD)
    os.rmdir(_OLD)
    socket.sethostname(plan["hostname"])
    if plan["read_only_root"]:
        mount("none", "/", flags=MS_REMOUNT | MS_BIND | MS_RDONLY | _flags_of("/"))
    kernel.hide_from_ptrace()


def _bind_host(old: str, new: str) -> None:
    for entry in sorted(os.scandir(old), key=lambda e: e.name):
        target = f"{new}/{entry.name}"
        if entry.name in _PRIVATE:
            continue
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), target)
        elif entry.is_dir():
            os.mkdir(target, 0o755)
            mount(entry.path, target, flags=MS_BIND | MS_REC)
            _protect(target)


def _make_proc(target: str) -> None:
    os.mkdir(target, 0o555)
    mount("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for name in _READ_ONLY:
        path = f"{target}/{name}"
        if os.path.exists(path):
            mount(path, path, flags=MS_BIND | MS_REC)
            _protect(path)
    for name in _COVERED:
        _cover(f"{target}/{name}", null="/old/dev/null")


def _make_devices(old: str, new: str, others: list[str]) -> None:
    os.mkdir(new, 0o755)
    mount("tmpfs", new, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755")
    for name in [*_DEVICES, *others]:
        source, target = f"{old}/{name}", f"{new}/{name}"
        if not os.path.exists(source):
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(source):
            os.mkdir(target)
        else:
            _touch(target)
        mount(source, target, flags=MS_BIND)
    for name, to in _LINKS.items():
        os.symlink(to, f"{new}/{name}")
    os.mkdir(f"{new}/shm")
    mount("tmpfs", f"{new}/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    os.mkdir(f"{new}/pts")
    try:
        options = "newinstance,ptmxmode=0666,mode=0620"
        mount("devpts", f"{new}/pts", "devpts", MS_NOSUID | MS_NOEXEC, options)
        os.symlink("pts/ptmx", f"{new}/ptmx")
    except OSError:
        os.rmdir(f"{new}/pts")  # a container without terminals still runs


def _own(source: str, target: str) -> None:
    os.mkdir(target, 0o777)
    mount(source, target, flags=MS_BIND)


def _open(base: str, sub: str) -> int:
    """A handle on what is mounted; no link, old or just planted, leads anywhere else."""
    flags = os.O_PATH | os.O_CLOEXEC
    descriptor = os.open(base, flags)
    for part in (part for part in sub.split("/") if part):
        try:
            inner = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.ELOOP, f"{sub} leads through a symbolic link")
    return descriptor


def _is(source: int, path: str) -> bool:
    """The path leads there already: it lies below a directory of the host's."""
    try:
        return os.path.samestat(os.fstat(source), os.stat(path))
    except OSError:
        return False


def _bind(source: int, target: str, *, read_only: bool) -> None:
    directory = stat.S_ISDIR(os.fstat(source).st_mode)
    place = _make_room(target, directory=directory)
    mount(f"/proc/self/fd/{source}", place, flags=MS_BIND | MS_REC)
    if read_only:
        _protect(place)


def _make_room(target: str, *, directory: bool) -> str:
    """Something to mount on. Where the host's directory has no such entry, it gets one for us."""
    path = posixpath.normpath(f"/{target.lstrip('/')}")
    if path == "/":
        raise OSError(errno.EINVAL, "nothing can be mounted over /")
    missing: list[str] = []
    there = path
    while not os.path.exists(there):
        if os.path.islink(there):
            raise OSError(errno.ELOOP, f"{there} is a symbolic link that leads nowhere")
        there, name = posixpath.split(there)
        missing.append(name)
    if not missing:
        if os.path.isdir(path) != directory:
            kind = "not a directory" if directory else "a directory"
            raise OSError(errno.ENOTDIR, f"cannot mount on {path}: it is {kind}")
        return path
    if not os.path.isdir(there):
        raise OSError(errno.ENOTDIR, f"cannot mount on {path}: {there} is not a directory")
    if not os.access(there, os.W_OK):
        _mirror(there)
    while missing:
        there = posixpath.join(there, missing.pop())
        if missing or directory:
            os.mkdir(there, 0o755)
        else:
            _touch(there)
    return path


def _mirror(path: str) -> None:
    """Replace a read-only directory by a writable one with the same entries, each still bound."""
    source = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        below = f"/proc/self/fd/{source}"
        mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")
        for entry in sorted(os.scandir(below), key=lambda e: e.name):
            target = f"{path}/{entry.name}"
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)
                continue
            if entry.is_dir(follow_symlinks=False):
                os.mkdir(target)
            else:
                _touch(target)
            with contextlib.suppress(PermissionError):  # what we may not see stays empty
                mount(entry.path, target, flags=MS_BIND | MS_REC)
        _protect(path, itself=False)
    finally:
        os.close(source)


def _cover(path: str, null: str = "/dev/null") -> None:
    if os.path.isdir(path):
        mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "mode=0555,size=4k")
    elif os.path.exists(path):
        mount(null, path, flags=MS_BIND)


def _protect(path: str, *, itself: bool = True) -> None:
    """Make what is mounted at `path` and below it read-only, keeping its other flags."""
    real = os.path.realpath(path)
    for point, flags in _mounts():
        if (itself and point == real) or point.startswith(f"{real}/"):
            try:
                mount("none", point, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | flags)
            except OSError as error:
                # A mount that this user cannot even reach can do no harm.
                if error.errno not in (errno.EACCES, errno.ENOENT, errno.EINVAL):
                    raise


def _flags_of(path: str) -> int:
    return next((flags for point, flags in reversed(_mounts()) if point == path), 0)


def _mounts() -> list[tuple[str, int]]:
    found = []
    table = "/proc/self/mountinfo" if os.path.exists("/proc/self") else "/old/proc/self/mountinfo"
    with open(table, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.split(" ")
            point = fields[4]
            for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n")):
                point = point.replace(code, character)
            flags = 0
            for option in fields[5].split(","):
                flags |= _FLAGS.get(option, 0)
            found.append((point.replace("\\134", "\\"), flags))
    return found


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
