"""Memory: huge pages, limits, what is left."""

from __future__ import annotations

import os
import re
import resource

from .finding import Finding, Root, State, bytes_text

AREA = "memory"
THP = "/sys/kernel/mm/transparent_hugepage"
#: Descriptors that a rank holds for each other rank of its job (one), and besides.
DESCRIPTORS_BESIDES = 64
#: Address space below which jobs of some ranks, Python and NumPy may not fit together.
COMFORTABLE_SPACE = 8 * 1024**3


def examine(root: Root) -> list[Finding]:
    """All findings."""
    return [_transparent(root), _reserved(root), _available(root), _shm(root), _overcommit(root), *_limits()]


def _transparent(root: Root) -> Finding:
    text = root.read(f"{THP}/shmem_enabled")
    name = "huge pages, shared memory"
    if text is None:
        return Finding(AREA, name, State.MISSING, "this kernel has none for shared memory",
                       "large buffers take more TLB misses", data={"shmem_enabled": None})  # fmt: skip
    chosen = re.search(r"\[(\w+)\]", text)
    mode = chosen[1] if chosen else text
    good = mode in ("always", "within_size", "advise", "force")
    return Finding(
        AREA, name, State.OK if good else State.IMPROVABLE, mode,
        "" if good else "buffers that ranks share consist of small pages: large ones take more TLB misses",
        "" if good else f"echo advise > {THP}/shmem_enabled   # as root",
        data={"shmem_enabled": mode},
    )  # fmt: skip


def _reserved(root: Root) -> Finding:
    sizes = {}
    for name in root.names("/sys/kernel/mm/hugepages"):
        size = re.fullmatch(r"hugepages-(\d+)kB", name)
        if size:
            free = root.number(f"/sys/kernel/mm/hugepages/{name}/free_hugepages")
            sizes[int(size[1]) * 1024] = free or 0
    value = ", ".join(f"{free} free of {bytes_text(size)}" for size, free in sorted(sizes.items()))
    # Nothing needs them: they are an alternative to the transparent ones.
    return Finding(AREA, "huge pages, reserved", State.OK, value or "none",
                   data={"free": {str(size): free for size, free in sizes.items()}})  # fmt: skip


def _available(root: Root) -> Finding:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", root.read("/proc/meminfo") or "", re.MULTILINE)
    available = int(found[1]) * 1024 if found else None
    if available is None:
        return Finding(AREA, "free memory", State.OK, "not shown here", data={"bytes": None})
    scarce = available < 256 * 1024**2
    return Finding(
        AREA, "free memory", State.IMPROVABLE if scarce else State.OK, bytes_text(available),
        "ranks may be ended by the kernel for lack of memory" if scarce else "", data={"bytes": available},
    )  # fmt: skip


def _shm(root: Root) -> Finding:
    try:
        status = os.statvfs(root.at("/dev/shm"))
    except OSError:
        return Finding(AREA, "/dev/shm", State.OK, "none; not used: ranks share nameless memory (memfd)",
                       data={"bytes": None})  # fmt: skip
    size = status.f_blocks * status.f_frsize
    return Finding(AREA, "/dev/shm", State.OK, f"{bytes_text(size)}; not used: ranks share nameless memory (memfd)",
                   data={"bytes": size})  # fmt: skip


def _overcommit(root: Root) -> Finding:
    mode = root.number("/proc/sys/vm/overcommit_memory")
    strict = mode == 2
    return Finding(
        AREA, "overcommit", State.IMPROVABLE if strict else State.OK,
        {0: "as the kernel judges", 1: "always", 2: "never"}.get(-1 if mode is None else mode, "not shown here"),
        "memory counts from when it is asked for, not from its use: large jobs may be refused" if strict else "",
        "sysctl vm.overcommit_memory=0   # as root" if strict else "", data={"mode": mode},
    )  # fmt: skip


def _limits() -> list[Finding]:
    files, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    endless = resource.RLIM_INFINITY

    def text(limit: int, shown: str) -> str:
        return "unlimited" if limit == endless else shown

    ranks = 1024 if files == endless else max(1, files - DESCRIPTORS_BESIDES)
    few = files != endless and files < 256
    raised = "$(ulimit -Hn)" if most_files == endless or most_files >= 1024 else "1024   # as root"
    tight = space != endless and space < COMFORTABLE_SPACE
    return [
        Finding(
            AREA, "open files", State.IMPROVABLE if few else State.OK, text(files, str(files)),
            f"enough for about {ranks} ranks; beyond, deaths of peers are looked up in /proc, and ranks of other hosts "
            "cannot be reached" if few else "",
            f"ulimit -n {raised}" if few else "",
            data={"limit": None if files == endless else files},
        ),
        Finding(
            AREA, "address space", State.IMPROVABLE if tight else State.OK, text(space, bytes_text(space)),
            "large jobs and buffers cannot be mapped" if tight else "", "ulimit -v unlimited" if tight else "",
            data={"limit": None if space == endless else space},
        ),
        # Nothing is locked on one machine, so no value is a bad one.
        Finding(AREA, "locked memory", State.OK, f"{text(locked, bytes_text(locked))}; not needed on one machine",
                data={"limit": None if locked == endless else locked}),
    ]  # fmt: skip
