"""Networks that are measured: which hosts the ranks are on, and what starts a program there."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import InvalidArgumentError

TRANSPORTS = ("tcp", "udp", "ofi")  #: what the benchmark could measure; `unisono run --transport` says which are there
SOCKETS = "sockets"  #: the program that does with plain sockets what the systems do
FABRIC = "fabric"  #: likewise with bare libfabric
#: What figures between hosts are compared with, and the operations that it has.
FLOORS = {
    SOCKETS: ("pingpong", "stream", "allreduce", "inflight", "barrier"),
    FABRIC: ("pingpong", "stream", "barrier"),
}
PLAIN = "tcp"  #: the name under which Unisono itself over TCP is compared with its other networks
LOSSY = "lossy"  #: the name of Unisono over UDP where one datagram in a hundred is lost
#: Names of Unisono with calls that a switch carries, and what happens to datagrams on both ways.
CARRIED = {"switch": "", "switch-0.1%": "loss=0.001", "switch-1%": "loss=0.01"}
FLAT = "flat"  #: the name of Unisono with an algorithm that knows no hosts
LOOPBACK, CABLES, LONG_CABLE = "loopback", "veth", "tun"


@dataclass(frozen=True)
class Network:
    """What lies between the ranks of a job."""

    transport: str
    hosts: tuple[tuple[str, int], ...]  #: their names, and how many ranks each has
    link: str = LOOPBACK  #: of one machine; or veth, cables between network namespaces; or tun, one with a delay
    round_trip_ms: float = 0.0  #: of a cable with a delay
    impairment: str = ""  #: of datagrams: UNISONO_UDP_IMPAIR
    switch: str = ""  #: that carries calls: HOST:PORT; the file of its secret
    secret: str = ""
    remote: str | None = None  #: a program that starts a command on a host, as ssh does; None: hosts are only names

    @property
    def ranks(self) -> int:
        """Of all hosts."""
        return sum(ranks for _, ranks in self.hosts)

    @property
    def mixed(self) -> bool:
        """Whether some ranks share memory."""
        return any(ranks > 1 for _, ranks in self.hosts)

    @property
    def floor(self) -> str:
        """Of `FLOORS`: what stands below Unisono on this network."""
        return FABRIC if self.transport == "ofi" else SOCKETS

    @property
    def text(self) -> str:
        """In words."""
        names = ", ".join(f"{name}:{ranks}" for name, ranks in self.hosts)
        where = {
            LOOPBACK: "the loopback of this machine",
            CABLES: "cables between network namespaces",
            LONG_CABLE: f"a cable with a round trip of {self.round_trip_ms:g} ms and packets of 1500 bytes",
        }[self.link]
        return f"{self.transport} over {where}; {len(self.hosts)} hosts ({names})"

    def over(self, transport: str) -> Network:
        """The same hosts with another network."""
        return replace(self, transport=transport)

    def run_options(self, *, transport: bool = True) -> list[str]:
        """Options of `unisono run`."""
        agent = "local" if self.link == LOOPBACK else "ip netns exec {host}"
        options = ["--hosts", ",".join(f"{name}:{ranks}" for name, ranks in self.hosts), "--agent", agent]
        if self.switch:
            options += ["--aggregate", self.switch, "--aggregate-secret-file", self.secret]
        return [*options, "--transport", self.transport] if transport else options

    def openmpi(self) -> tuple[list[str], list[str]]:
        """What stands before mpirun, and its options."""
        if self.remote is None:
            # Its default leaves the loopback out, and takes a card's address, which is of this machine all the same.
            return [], ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
        options = ["--host", ",".join(f"{name}:{ranks}" for name, ranks in self.hosts)]
        options += ["--mca", "plm_rsh_agent", self.remote, "--mca", "btl", "tcp,vader,self"]
        # Its own start goes into the first host; the program takes a line for a shell.
        return [self.remote, self.hosts[0][0]], options

    def in_shell(self, before: Sequence[str], words: Sequence[str]) -> list[str]:
        """A command, or what starts it on a host."""
        return [*before, shlex.join(words)] if before else list(words)

    def mpich(self) -> dict[str, str]:
        """Variables that keep MPICH off shared memory."""
        return {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "MPIR_CVAR_NOLOCAL": "1"}


def known(transport: str, there: Sequence[str]) -> str:
    """A transport of this Unisono, or an error that says which there are."""
    if transport not in there:
        raise InvalidArgumentError(
            f"transport {transport!r} was given, and this Unisono has {', '.join(there)}; without --transport ranks "
            "share memory"
        )
    return transport


def divide(ranks: int, hosts: int | None, prefix: str = "host") -> tuple[tuple[str, int], ...]:
    """Hosts with ranks one block after the other; None: a host for each rank."""
    number = ranks if hosts is None else hosts
    if not 2 <= number <= ranks:
        raise InvalidArgumentError(f"{number} hosts were asked for with {ranks} ranks; allowed are 2 to {ranks}")
    least, more = divmod(ranks, number)
    return tuple((f"{prefix}{i}", least + (i < more)) for i in range(number))


def prefix_of_names() -> str:
    """Names of namespaces that no other benchmark has."""
    return f"unb{os.getpid()}x"


def besides(network: Network | None, interface: str) -> tuple[dict[str, Network], dict[str, str]]:
    """What is measured beside Unisono and its peers, and the peers that cannot be, with the reason."""
    if network is None:
        return {}, {}
    beside = {network.floor: network} if interface == "c" else {}
    if network.transport != PLAIN:
        beside[PLAIN] = network.over(PLAIN)
    if network.transport == "udp":
        beside[LOSSY] = replace(network, impairment="loss=0.01")
    unfit = {}
    if network.remote is None and network.mixed:
        why = "between hosts that are only names it would share memory among all ranks"
        unfit = dict.fromkeys(("openmpi", "mpi4py", "mpich"), why)
    elif network.remote is not None:
        unfit["mpich"] = "its launcher looks for hosts by names that only a name server could know here"
    return beside, unfit
