"""Goals for figures, read from bench/targets.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidArgumentError
from .machine import Placement
from .network import FLAT, LOSSY, PLAIN, TRANSPORTS, Network
from .plan import BUFFERS, COUNTS, INTERFACES, OPS, PEERS, PYTHON_PEERS, UNIFORM, WAITED, parse_size
from .session import Measured

SIZES = (4, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 4 << 20)  #: at which targets of networks are looked at
FILE = Path(__file__).resolve().parents[3] / "bench" / "targets.yaml"


@dataclass(frozen=True)
class Target:
    """A bound on the ratio to the better peer, on the ratio to the limit, or on both."""

    case: str
    ops: tuple[str, ...]
    least_bytes: int
    most_bytes: int
    peer: float | None = None
    limit: float | None = None
    either: bool = False  #: one of the two bounds is enough
    ranks: tuple[int, ...] = ()  #: none: any
    crowded: bool | None = None  #: None: whether or not ranks share cores
    uniform: float | None = None  #: bound on the ratio of a v-collective to what it generalises
    waited: float | None = None  #: bound on the ratio of calls in flight to the same calls, each waited for
    buffers: tuple[str, ...] = ()  #: none: any
    counts: tuple[str, ...] = ()  #: of v-collectives; none: any
    interface: str = "c"  #: by which the systems are called
    peers: tuple[str, ...] = ()  #: the peers it is about; none: all that were measured
    network: str | None = None  #: what carries data between hosts; None: all ranks share memory
    hosts: int | None = None  #: with a network: so many hosts; None: each rank is one
    flat: float | None = None  #: bound on the ratio to an algorithm that knows no hosts
    plain: float | None = None  #: bound on the ratio of another network to TCP
    lossy: float | None = None  #: UDP: what is left of it where one datagram in a hundred is lost, at the least

    def applies(self, measured: Measured, placement: Placement) -> bool:
        """Whether the target is about this figure."""
        cell = measured.cell
        return (
            cell.op in self.ops
            and self.least_bytes <= cell.bytes <= self.most_bytes
            and (not self.ranks or cell.ranks in self.ranks)
            and self.crowded in (None, placement.crowded)
            and (not self.buffers or cell.buffers in self.buffers)
            and (not self.counts or cell.counts in self.counts)
            and cell.interface == self.interface
            and self.is_over(cell.network)
        )

    def is_over(self, network: Network | None) -> bool:
        """Whether it is about such hosts."""
        if network is None or self.network is None:
            return network is None and self.network is None
        hosts = network.ranks if self.hosts is None else self.hosts
        return self.network == network.transport and len(network.hosts) == hosts

    def is_met(self, measured: Measured) -> bool | None:
        """Whether it is met; None if what it is compared with was not measured."""
        verdicts: list[bool] = []
        # Other states of Unisono are no peers to be better than.
        about = self.peers or (*PEERS, *PYTHON_PEERS)
        ratios = [ratio.value for peer, ratio in measured.ratios.items() if peer in about]
        if self.peer is not None and ratios:
            # The better peer is the one that the ratio to is larger.
            verdicts.append(max(ratios) <= self.peer)
        if self.limit is not None and measured.limit_ratio is not None:
            verdicts.append(measured.limit_ratio <= self.limit)
        own = ((UNIFORM, self.uniform), (WAITED, self.waited), (FLAT, self.flat), (PLAIN, self.plain))
        for name, bound in own:
            if bound is not None and name in measured.ratios:
                verdicts.append(measured.ratios[name].value <= bound)
        if self.lossy is not None and LOSSY in measured.ratios:
            verdicts.append(measured.ratios[LOSSY].value >= self.lossy)
        bounds = (self.peer, self.limit, self.lossy, *(bound for _, bound in own))
        wanted = sum(bound is not None for bound in bounds)
        if self.either and any(verdicts):
            return True
        if len(verdicts) < wanted:
            return False if verdicts and not self.either and not all(verdicts) else None
        return all(verdicts)


def load(path: Path = FILE) -> list[Target]:
    """All targets; none if the file is not there, as in an installed package."""
    try:
        import yaml
    except ImportError:
        return []
    if not path.is_file():
        return []
    return [_target(entry, path) for entry in yaml.safe_load(path.read_text())]


def _target(entry: dict[str, Any], path: Path) -> Target:
    known = {"case", "ops", "bytes", "peer", "limit", "either", "ranks", "crowded", "buffers", "counts", "interface"}
    known |= {"peers", "uniform", "waited", "network", "hosts", "flat", "plain", "lossy"}
    ops = tuple(entry.get("ops", ()))
    if not set(entry) <= known or not ops or not set(ops) <= set(OPS):
        raise InvalidArgumentError(
            f"{path}: a target has the keys {', '.join(sorted(known))}, and ops of {OPS}: {entry}"
        )
    interface = [entry["interface"]] if "interface" in entry else []
    network = [entry["network"]] if "network" in entry else []
    for key, given, allowed in (
        ("network", network, TRANSPORTS),
        ("buffers", entry.get("buffers", []), BUFFERS),
        ("counts", entry.get("counts", []), COUNTS),
        ("interface", interface, INTERFACES),
    ):
        if not set(given) <= set(allowed):
            raise InvalidArgumentError(f"{path}: {key} of a target are of {', '.join(allowed)}: {entry}")
    least, most = (parse_size(str(size)) if size else 0 for size in entry["bytes"])
    return Target(
        case=entry["case"],
        ops=ops,
        least_bytes=least,
        most_bytes=most,
        peer=entry.get("peer"),
        limit=entry.get("limit"),
        uniform=entry.get("uniform"),
        waited=entry.get("waited"),
        either=bool(entry.get("either", False)),
        ranks=tuple(entry.get("ranks", ())),
        crowded=entry.get("crowded"),
        buffers=tuple(entry.get("buffers", ())),
        counts=tuple(entry.get("counts", ())),
        interface=entry.get("interface", "c"),
        peers=tuple(entry.get("peers", ())),
        network=entry.get("network"),
        hosts=entry.get("hosts"),
        flat=entry.get("flat"),
        plain=entry.get("plain"),
        lossy=entry.get("lossy"),
    )


def wanted(targets: Sequence[Target], transport: str, *, divided: bool) -> dict[int, list[tuple[str, int]]]:
    """Operations and sizes that targets of a network are about, by ranks. `divided`: with several ranks on a host."""
    found: dict[int, list[tuple[str, int]]] = {}
    for target in targets:
        if target.network != transport or (target.hosts is not None) != divided:
            continue
        pairs = [(op, size) for op in target.ops for size in SIZES if target.least_bytes <= size <= target.most_bytes]
        for ranks in target.ranks:
            here = found.setdefault(ranks, [])
            here += [pair for pair in pairs if pair not in here]
    return found


def find(targets: Sequence[Target], measured: Measured, placement: Placement) -> Target | None:
    """The first target about a figure: the file goes from the particular to the general."""
    if measured.system != "unisono":
        return None
    return next((target for target in targets if target.applies(measured, placement)), None)
