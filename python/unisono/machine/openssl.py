"""Whether data between hosts can be encrypted here."""

from __future__ import annotations

import ctypes

from .finding import Finding, State

LIBRARY = "libssl.so.3"
CRYPTO = "libcrypto.so.3"


def examine() -> Finding:
    """OpenSSL, as the library would load it."""
    area, name = "network", "TLS"
    try:
        ctypes.CDLL(LIBRARY)
        crypto = ctypes.CDLL(CRYPTO)
    except OSError:
        return Finding(
            area, name, State.OK, "no OpenSSL 3; encryption between hosts (--tls) needs it: apt-get install libssl3",
            data={"version": None},
        )  # fmt: skip
    crypto.OpenSSL_version.restype = ctypes.c_char_p
    version = (crypto.OpenSSL_version(0) or b"").decode("ascii", "replace")
    return Finding(
        area, name, State.OK, f"{version}; off unless asked for (--tls, UNISONO_TLS)", data={"version": version}
    )
