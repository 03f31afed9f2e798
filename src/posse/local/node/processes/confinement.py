"""Paths inside a volume that never lead out of it.

A container can plant links in what it may write. Whoever walks there later goes one directory at a
time, by handle, and follows no link.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


class Escape(ValueError):
    """A path that leads out of where it belongs; the text says how."""


def parts_of(relative: str) -> list[str]:
    """The names in a relative path; `..` and absolute paths are refused."""
    if relative.startswith("/"):
        raise Escape(f'"{relative}" must be a relative path')
    parts = [part for part in relative.split("/") if part not in ("", ".")]
    if any(part == ".." or "\0" in part for part in parts):
        raise Escape(f'"{relative}" must not contain ".."')
    return parts


def make_within(base: Path, relative: str) -> Path:
    """`relative` below `base`, made as a directory where it is missing; a file there is a file."""
    parts = parts_of(relative)
    handle = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for index, part in enumerate(parts):
            try:
                inner = _enter(handle, part)
            except FileNotFoundError:
                os.mkdir(part, 0o755, dir_fd=handle)
                inner = _enter(handle, part)
            except OSError as error:
                last = index == len(parts) - 1
                if error.errno == errno.ENOTDIR and last and _is_file(handle, part):
                    break
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    raise Escape(f'"{relative}" leads through a link or a file') from None
                raise
            os.close(handle)
            handle = inner
    finally:
        os.close(handle)
    return base.joinpath(*parts)


def link_within(base: Path, relative: str, target: Path) -> None:
    """A link at `relative` below `base`; whatever else is there already is refused."""
    *above, name = parts_of(relative) or [""]
    if not name:
        raise Escape("nothing can be mounted over /")
    make_within(base, "/".join(above))
    handle = os.open(base.joinpath(*above), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            os.symlink(target, name, dir_fd=handle)
        except FileExistsError:
            if _reads(handle, name) == str(target):
                return
            try:
                os.rmdir(name, dir_fd=handle)  # an empty directory may be mounted over
            except OSError:
                raise Escape(f'"/{relative}" is there already') from None
            os.symlink(target, name, dir_fd=handle)
    finally:
        os.close(handle)


def write_new(base: Path, relative: str, content: bytes, mode: int) -> None:
    """A file below a directory that nobody else can write yet."""
    parts = parts_of(relative)
    if not parts:
        raise Escape(f'"{relative}" names no file')
    path = base.joinpath(*parts)
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode & 0o777)


def _enter(handle: int, name: str) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, dir_fd=handle)


def _is_file(handle: int, name: str) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)


def _reads(handle: int, name: str) -> str:
    try:
        return os.readlink(name, dir_fd=handle)
    except OSError:
        return ""
