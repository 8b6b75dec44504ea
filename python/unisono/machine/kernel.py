"""The kernel's services, each one really tried."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import select
import socket
import subprocess
import sys
from collections.abc import Callable

from .. import _core
from .finding import Finding, Root, State

AREA = "kernel"
SECONDS = 20
SYSCALLS = {
    "x86_64": {"futex": 202, "membarrier": 324},
    "aarch64": {"futex": 98, "membarrier": 283},
    "riscv64": {"futex": 98, "membarrier": 283},
}
MEMBARRIER_GLOBAL_EXPEDITED = 2
MEMBARRIER_REGISTER_GLOBAL_EXPEDITED = 4
FUTEX_WAIT = 0

#: One process shows its memory, another one, not its child, tries to read and write it: as ranks would.
TARGET = """
import ctypes, os, sys
if sys.argv[1] == "open":
    ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)
memory = ctypes.create_string_buffer(b"in the one process ", 32)
print(os.getpid(), ctypes.addressof(memory), flush=True)
sys.stdin.read()
print(memory.value.decode())
"""
READER = """
import ctypes, os, sys
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
own = ctypes.create_string_buffer(32)
here, there = Part(ctypes.addressof(own), 19), Part(int(sys.argv[2]), 19)
for call in (libc.process_vm_readv, libc.process_vm_writev):
    call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
    call.restype = ctypes.c_ssize_t
    if call(int(sys.argv[1]), ctypes.byref(here), 1, ctypes.byref(there), 1, 0) != 19:
        sys.exit(f"{call.__name__}: {os.strerror(ctypes.get_errno())}")
    own.value = own.value.replace(b"one", b"two")
"""


def examine(root: Root) -> list[Finding]:
    """All findings."""
    return [_version(), _memfd(), _futex(), _rendezvous(), _membarrier(), _pidfd(), _cma(root), _clock(root)]


def _version() -> Finding:
    release = platform.release()
    numbers = [int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit()]
    old = numbers < [5, 4]
    return Finding(
        AREA, "version", State.IMPROVABLE if old else State.OK, f"{platform.system()} {release}, {platform.machine()}",
        "kernels before 5.4 lack pidfd_open, and before 4.16 global membarriers" if old else "",
        "upgrade the kernel" if old else "", data={"release": release, "machine": platform.machine()},
    )  # fmt: skip


def _essential(name: str, try_it: Callable[[], str], effect: str, remedy: str = "") -> Finding:
    try:
        value = try_it()
    except OSError as failure:
        return Finding(AREA, name, State.MISSING, f"refused: {failure.strerror}", effect, remedy, essential=True,
                       data={"works": False, "errno": errno.errorcode.get(failure.errno or 0)})  # fmt: skip
    return Finding(AREA, name, State.OK, value, essential=True, data={"works": True})


def _memfd() -> Finding:
    def try_it() -> str:
        descriptor = os.memfd_create("unisono-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, 2 * mmap.PAGESIZE)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
            with mmap.mmap(descriptor, 0, mmap.MAP_SHARED) as one, mmap.mmap(descriptor, 0, mmap.MAP_SHARED) as other:
                one[mmap.PAGESIZE] = 77
                if other[mmap.PAGESIZE] != 77:
                    raise OSError(errno.EIO, "what one mapping holds is not in the other")
            try:
                os.ftruncate(descriptor, 0)
            except PermissionError:
                return "works"
            raise OSError(errno.EINVAL, "seals have no effect")
        finally:
            os.close(descriptor)

    return _essential(
        "memfd with seals", try_it, "ranks share memory through it: jobs of several ranks are impossible",
        "allow memfd_create in the seccomp profile: docker run --security-opt seccomp=PROFILE.json",
    )  # fmt: skip


def _syscall(name: str, *arguments: object) -> int | None:
    """The result of a system call, minus the error number if it failed; None if its number is not known here."""
    number = SYSCALLS.get(platform.machine(), {}).get(name)
    if number is None:
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(ctypes.c_long(number), *arguments))
    return -ctypes.get_errno() if result < 0 else result


def _futex() -> Finding:
    def try_it() -> str:
        word = ctypes.c_uint32(1)
        # The word is not 0, so a kernel that has futexes says at once that there is nothing to wait for.
        result = _syscall("futex", ctypes.byref(word), ctypes.c_int(FUTEX_WAIT), ctypes.c_uint32(0), None, None,
                          ctypes.c_int(0))  # fmt: skip
        if result is None:
            return "not tried on this processor"
        if result != -errno.EAGAIN:
            raise OSError(-result, os.strerror(-result) if result < 0 else "waited for nothing")
        return "works"

    return _essential("futex", try_it, "ranks that wait cannot sleep")


def _rendezvous() -> Finding:
    def try_it() -> str:
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(b"\0unisono-doctor-%d" % os.getpid())
            server.listen(1)
            client.settimeout(SECONDS)
            client.connect(server.getsockname())
            with server.accept()[0] as accepted:
                accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return "works"

    return _essential("abstract Unix sockets", try_it, "ranks find each other through them: jobs cannot form")


def _membarrier() -> Finding:
    register = _syscall("membarrier", ctypes.c_int(MEMBARRIER_REGISTER_GLOBAL_EXPEDITED), ctypes.c_uint(0),
                        ctypes.c_int(0))  # fmt: skip
    issue = _syscall("membarrier", ctypes.c_int(MEMBARRIER_GLOBAL_EXPEDITED), ctypes.c_uint(0), ctypes.c_int(0))
    data = {"works": register == 0 and issue == 0}
    if register is None:
        return Finding(AREA, "membarrier", State.OK, "not tried on this processor", data=data)
    if register == 0 and issue == 0:
        return Finding(AREA, "membarrier", State.OK, "works", data=data)
    return Finding(
        AREA, "membarrier", State.MISSING, f"refused: {os.strerror(-(register or issue or 0))}",
        "every message costs its sender a full memory barrier, some tens of nanoseconds",
        "allow membarrier in the seccomp profile: docker run --security-opt seccomp=PROFILE.json",
        data=data,
    )  # fmt: skip


def _pidfd() -> Finding:
    try:
        descriptor = os.pidfd_open(os.getpid())
    except OSError as failure:
        return Finding(
            AREA, "pidfd", State.MISSING, f"refused: {failure.strerror}",
            "deaths of peers are looked up in /proc, and a rank that ends is found by asking",
            "allow pidfd_open in the seccomp profile: docker run --security-opt seccomp=PROFILE.json",
            data={"works": False},
        )  # fmt: skip
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        running = not poll.poll(0)
    finally:
        os.close(descriptor)
    return Finding(AREA, "pidfd", State.OK if running else State.MISSING,
                   "works" if running else "says that this process has ended", data={"works": running})  # fmt: skip


def _copy_between_processes(permission: str) -> str:
    """Empty if one process could read and write another's memory; else why not."""
    run = [sys.executable, "-I", "-S", "-c"]
    with subprocess.Popen([*run, TARGET, permission], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as target:  # fmt: skip
        assert target.stdin is not None
        assert target.stdout is not None
        try:
            place = target.stdout.readline().split()
            if len(place) != 2:
                return "no process could be started to try it"
            done = subprocess.run([*run, READER, *place], stderr=subprocess.PIPE, text=True, timeout=SECONDS)
            if done.returncode != 0:
                return done.stderr.strip().rpartition("\n")[2] or f"the attempt ended with status {done.returncode}"
            output, _ = target.communicate(timeout=SECONDS)
            return "" if output.strip() == "in the two process" else "what was written did not arrive"
        except subprocess.TimeoutExpired:
            return f"no answer within {SECONDS} s"
        finally:
            target.kill()


def _copies() -> str:
    """What this machine has the kernel copy, in words."""
    setting = os.environ.get("UNISONO_KERNEL_COPY", "auto")
    if setting != "auto":
        return f"UNISONO_KERNEL_COPY={setting}"
    found = _core.copy_class()
    kinds = {"one_way": "messages, broadcasts", "exchange": "all-gathers, all-to-alls", "reduction": "reductions"}
    used = [f"{name} from {found[kind] >> 10} KiB" for kind, name in kinds.items() if found[kind] is not None]
    if not used:
        return "serves put and get, else copies through shared memory are faster here"
    return f"serves put and get, {', '.join(used)} ({'measured' if found['source'] != 'usual' else 'not measured'})"


def _cma(root: Root) -> Finding:
    name = "CMA (process_vm_readv, _writev)"
    scope = root.number("/proc/sys/kernel/yama/ptrace_scope")
    failure = _copy_between_processes("closed")
    data = {"works": not failure, "works_if_permitted": True, "ptrace_scope": scope}
    if not failure:
        return Finding(AREA, name, State.OK, f"works between any two processes of this user; {_copies()}", data=data)
    effect = "ordinary buffers go through cells of shared memory, with one copy more; put and get go by messages"
    if scope is not None and scope > 0 and not _copy_between_processes("open"):
        text = f"works between ranks, which permit it to each other (yama ptrace_scope {scope}); {_copies()}"
        return Finding(AREA, name, State.OK, text, data=data)
    remedy = "docker run --cap-add SYS_PTRACE   # or a seccomp profile that allows both calls"
    if scope is not None and scope > 1:
        remedy = "sysctl kernel.yama.ptrace_scope=0   # as root"
    return Finding(AREA, name, State.MISSING, f"refused: {failure}", effect, remedy,
                   data=data | {"works_if_permitted": False})  # fmt: skip


def _clock(root: Root) -> Finding:
    folder = "/sys/devices/system/clocksource/clocksource0"
    source = root.read(f"{folder}/current_clocksource")
    offered = (root.read(f"{folder}/available_clocksource") or "").split()
    data = {"source": source, "available": offered}
    if source is None:
        return Finding(AREA, "clock source", State.OK, "not shown here", data=data)
    # These are read without a system call; the others cost hundreds of nanoseconds or more.
    quick = source in ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource")
    better = next((name for name in ("tsc", "kvm-clock") if name in offered), None)
    return Finding(
        AREA, "clock source", State.OK if quick else State.IMPROVABLE, source,
        "" if quick else "each look at the clock is a slow system call",
        "" if quick else f"echo {better} > {folder}/current_clocksource   # as root" if better
        else "none better is offered: look for the kernel's reason in dmesg (grep -i tsc)",
        data=data,
    )  # fmt: skip
