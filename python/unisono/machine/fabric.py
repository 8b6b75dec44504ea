"""Which providers of libfabric carry jobs between hosts here."""

from __future__ import annotations

import ctypes

from .finding import Finding, State

LIBRARY = "libfabric.so.1"
INTERFACE = 1 << 16 | 17  # 1.17: the version that the network asks for
RELIABLE_DATAGRAMS = 3  # FI_EP_RDM
MESSAGES = 1 << 1  # FI_MSG
CARDS = ("cxi", "efa", "verbs", "opx", "psm3")  # providers of hardware that carries data without the processor


class _Fabric(ctypes.Structure):
    _fields_ = [("fabric", ctypes.c_void_p), ("name", ctypes.c_char_p), ("provider", ctypes.c_char_p)]


class _Info(ctypes.Structure):
    _fields_ = [
        ("next", ctypes.c_void_p),
        ("capabilities", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("address_format", ctypes.c_uint32),
        ("address_lengths", ctypes.c_size_t * 2),
        ("addresses", ctypes.c_void_p * 2),
        ("handle", ctypes.c_void_p),
        ("directions", ctypes.c_void_p * 2),
        ("endpoint", ctypes.POINTER(ctypes.c_uint32)),  # begins with its type
        ("domain", ctypes.c_void_p),
        ("fabric", ctypes.POINTER(_Fabric)),
    ]


def examine() -> Finding:
    """The providers with reliable datagrams and messages, each once."""
    area, name = "network", "libfabric"
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return Finding(area, name, State.OK, "not installed; RDMA cards need it: apt-get install libfabric1")
    library.fi_getinfo.argtypes = [
        ctypes.c_uint32,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_uint64,
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_void_p),
    ]
    library.fi_freeinfo.argtypes = [ctypes.c_void_p]
    first = ctypes.c_void_p()
    found: list[str] = []
    if library.fi_getinfo(INTERFACE, None, None, 0, None, ctypes.byref(first)) == 0:
        address = first.value
        while address is not None:
            offered = _Info.from_address(address)
            provider = (offered.fabric.contents.provider or b"").decode("ascii", "replace")
            usable = offered.endpoint[0] == RELIABLE_DATAGRAMS and offered.capabilities & MESSAGES
            if usable and provider not in found:
                found.append(provider)
            address = offered.next
        library.fi_freeinfo(first)
    data = {"providers": found}
    if not found:
        effect = "no provider offers reliable datagrams: UNISONO_TRANSPORT=ofi is refused"
        return Finding(area, name, State.IMPROVABLE, "no provider", effect, data=data)
    kind = "" if any(provider.split(";")[0] in CARDS for provider in found) else " (no RDMA card)"
    return Finding(area, name, State.OK, ", ".join(found) + kind, data=data)
