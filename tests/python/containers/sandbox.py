"""Runs a command as in a container: system calls refused, another user, a small /dev/shm, no /proc, few cores, limits.

python sandbox.py [--deny CALL,...] [--uid UID] [--shm MEGABYTES] [--hide FOLDER] [--cores N,...] [--limit NAME=VALUE]
    -- COMMAND ...

Exit status 77: this machine does not let us, for the reason on standard error.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import platform
import resource
import struct
import sys

CANNOT = 77
#: System calls by machine: x86_64, and the numbers that all newer ones share.
CALLS = {
    "madvise": (28, 233),
    "membarrier": (324, 283),
    "memfd_create": (319, 279),
    "pidfd_open": (434, 434),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "sched_getaffinity": (204, 123),
    "sched_setaffinity": (203, 122),
    "sysinfo": (99, 179),
}
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 0x40000

libc = ctypes.CDLL(None, use_errno=True)


class FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def check(result: int, what: str) -> None:
    if result != 0:
        print(f"{what}: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        sys.exit(CANNOT)


def deny(names: list[str]) -> None:
    """These calls fail with EPERM from now on, here and in all descendants."""
    machine = platform.machine()
    if machine not in AUDIT:
        print(f"system calls of {machine} are not known here", file=sys.stderr)
        sys.exit(CANNOT)
    numbers = [CALLS[name][machine != "x86_64"] for name in names]

    def instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, value)

    load, jump_if_equal, answer = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EPERM
    program = [
        instruction(load, 0, 0, 4),  # the architecture; calls of another one have other numbers
        instruction(jump_if_equal, 1, 0, AUDIT[machine]),
        instruction(answer, 0, 0, allow),
        instruction(load, 0, 0, 0),  # the call's number
    ]
    for number in numbers:
        program += [instruction(jump_if_equal, 0, 1, number), instruction(answer, 0, 0, refuse)]
    program.append(instruction(answer, 0, 0, allow))
    code = ctypes.create_string_buffer(b"".join(program))
    argument = FilterProgram(len(program), ctypes.addressof(code))
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    check(libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(argument), 0, 0), "a filter of system calls")


def small_shm(megabytes: int) -> None:
    """A /dev/shm of this size, seen by this process and its descendants only."""
    check(libc.unshare(CLONE_NEWNS), "a mount namespace")
    check(libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None), "making mounts private")
    size = f"size={megabytes}m".encode()
    check(libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", ctypes.c_ulong(0), size), "mounting /dev/shm")
    status = os.statvfs("/dev/shm")
    if status.f_blocks * status.f_frsize != megabytes << 20:
        print("/dev/shm has another size", file=sys.stderr)
        sys.exit(CANNOT)


def hide(folder: str) -> None:
    """Nothing is in this folder any more, for this process and its descendants."""
    check(libc.unshare(CLONE_NEWNS), "a mount namespace")
    check(libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None), "making mounts private")
    check(libc.mount(b"tmpfs", folder.encode(), b"tmpfs", ctypes.c_ulong(0), None), f"mounting {folder}")


def become(uid: int) -> None:
    """An ordinary user without groups."""
    try:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    except PermissionError as failure:
        print(f"becoming user {uid}: {failure.strerror}", file=sys.stderr)
        sys.exit(CANNOT)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--deny", type=lambda text: text.split(","), default=[])
    parser.add_argument("--uid", type=int)
    parser.add_argument("--shm", type=int)
    parser.add_argument("--hide", metavar="FOLDER")
    parser.add_argument("--cores", type=lambda text: [int(core) for core in text.split(",")])
    parser.add_argument("--limit", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, options.cores)
    if options.shm is not None:
        small_shm(options.shm)
    if options.hide is not None:
        hide(options.hide)
    for limit in options.limit:
        name, _, value = limit.partition("=")
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (int(value), int(value)))
    if options.uid is not None:
        become(options.uid)
    if options.deny:
        deny(options.deny)
    command = options.command[options.command[:1] == ["--"] :]
    try:
        os.execvp(command[0], command)
    except PermissionError as failure:
        print(f"{command[0]}: {failure.strerror}", file=sys.stderr)
        sys.exit(CANNOT)


if __name__ == "__main__":
    main()
