"""Two renames that POSIX lacks, each one system call: onto a free name only, and two files exchanging their names.

Linux has renameat2, macOS renamex_np; Windows' own rename refuses a taken name.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_AT_FDCWD = -100
_NO_REPLACE = 4 if sys.platform == "darwin" else 1
_EXCHANGE = 2  # the same number on both
_CANNOT = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}


def rename(source: str, target: str) -> bool:
    """Renames if the target's name is free; False if this system or file system has no such call.

    Raises:
        FileExistsError: the name is taken.
        OSError: as os.rename.
    """
    return _rename(source, target, _NO_REPLACE)


def exchange(one: str, other: str) -> bool:
    """Gives two files each other's name; False if this system or file system has no such call.

    Raises:
        FileNotFoundError: one of them is not there.
        OSError: as os.rename.
    """
    return _rename(one, other, _EXCHANGE)


def _rename(source: str, target: str, flag: int) -> bool:
    call = _call()
    number = errno.ENOSYS if call is None else call(os.fsencode(source), os.fsencode(target), flag)
    if number in _CANNOT:
        return False
    if number:
        raise OSError(number, os.strerror(number), source, None, target)
    return True


@cache
def _call() -> Callable[[bytes, bytes, int], int] | None:
    """The system's call as a function that returns the error number, 0 for success."""
    if sys.platform == "win32":
        return None
    import ctypes  # costs milliseconds; only writers need it

    library = ctypes.CDLL(None, use_errno=True)
    try:
        act = library.renamex_np if sys.platform == "darwin" else library.renameat2
    except AttributeError:
        return None
    act.restype = ctypes.c_int
    if sys.platform == "darwin":
        act.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint]
        return lambda source, target, flag: 0 if act(source, target, flag) == 0 else ctypes.get_errno()
    act.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return lambda source, target, flag: (
        0 if act(_AT_FDCWD, source, _AT_FDCWD, target, flag) == 0 else ctypes.get_errno()
    )
