"""The system calls of Linux for which Python has no function."""

from __future__ import annotations

import ctypes
import os
from typing import Any

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_NOATIME = 0x400
MS_NODIRATIME = 0x800
MS_BIND = 0x1000
MS_REC = 0x4000
MS_SLAVE = 0x80000
MS_RELATIME = 0x200000
MNT_DETACH = 0x2

_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
# pivot_root has no function in the C library; its number depends on the machine.
_PIVOT_ROOT = {
    "x86_64": 155, "aarch64": 41, "riscv64": 41, "loongarch64": 41, "i686": 217,
    "armv7l": 218, "armv6l": 218, "ppc64le": 203, "s390x": 217,
}  # fmt: skip


class _Library:
    """Loaded on first use: a shim without namespaces needs one call of it at most."""

    def __init__(self) -> None:
        self._loaded: Any = None

    def call(self, name: str, *arguments: Any) -> int:
        if self._loaded is None:
            self._loaded = ctypes.CDLL(None, use_errno=True)
        result = int(getattr(self._loaded, name)(*arguments))
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")
        return result


_library = _Library()


def unshare(flags: int) -> None:
    _library.call("unshare", ctypes.c_int(flags))


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    try:
        _library.call(
            "mount",
            source.encode(),
            target.encode(),
            kind.encode() or None,
            ctypes.c_ulong(flags),
            data.encode() or None,
        )
    except OSError as error:
        raise OSError(error.errno, f"mount {target}: {os.strerror(error.errno or 0)}") from None


def unmount(target: str, flags: int = MNT_DETACH) -> None:
    _library.call("umount2", target.encode(), ctypes.c_int(flags))


def pivot_root(new: str, old: str) -> None:
    machine = os.uname().machine
    if machine not in _PIVOT_ROOT:
        raise OSError(f"pivot_root is not known on {machine}")
    number = ctypes.c_long(_PIVOT_ROOT[machine])
    _library.call("syscall", number, new.encode(), old.encode())


def become_subreaper() -> None:
    """Descendants whose parents are gone become children of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide_from_ptrace() -> None:
    _prctl(_PR_SET_DUMPABLE, 0)


def drop_privileges() -> None:
    """No capability is left and none can come back, not even by executing a file."""
    for capability in range(64):
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            break  # past the last one that this kernel knows
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)(*[0] * 6)
    _library.call("capset", ctypes.byref(header), ctypes.byref(nothing))


def _prctl(option: int, argument: int) -> None:
    zero = ctypes.c_ulong(0)
    _library.call("prctl", ctypes.c_int(option), ctypes.c_ulong(argument), zero, zero, zero)
