"""Causes of `--when` that are a level over time, such as `queue > 10000 for 5s`.

The node samples its counters and processes once per second while it is recorded. LTTng reports the samples to the
recorder, which compares them.
"""
import re
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from dyntrace_command.common.terminal import size

# A sample may come late. After this many seconds without one, a level no longer lasts.
GAP_S = 3
SIZES = {"kB": 10 ** 3, "MB": 10 ** 6, "GB": 10 ** 9}


class Quantity(NamedTuple):
    """What can be compared: the event of its samples; the counters that are its value, as patterns; the counter that is
    its limit; the units of its bound; the value of a counter that is one unit."""
    event: str
    counters: Tuple[str, ...] = ()
    limit: str = ""
    units: Tuple[str, ...] = ("",)
    scale: float = 1


# The limit of the memory is that of the host or of the node's cgroup, which the recorder reads.
HOST_MEMORY = "host memory"
COUNTER, SAMPLE = "vm_counter", "process_sample"
QUANTITIES = {
    "memory": Quantity(COUNTER, ("memory_total",), HOST_MEMORY, ("%", *SIZES)),
    "cpu": Quantity(COUNTER, ("scheduler_utilization_*",), "", ("%",), 10),
    "run_queue": Quantity(COUNTER, ("run_queue",)),
    "processes": Quantity(COUNTER, ("processes",), "process_limit", ("", "%")),
    "ports": Quantity(COUNTER, ("ports",), "port_limit", ("", "%")),
    "atoms": Quantity(COUNTER, ("atoms",), "atom_limit", ("", "%")),
    "queue": Quantity(SAMPLE),
    "silence": Quantity(COUNTER, ("processes",), "", ("s",)),
}
SILENCE = "silence"
FORM = re.compile(r"(\w+)\s*>\s*(\d{1,12}(?:\.\d{1,6})?)\s*(%|[A-Za-z]*)(?:\s+for\s+(\d{1,5})\s*s)?", re.ASCII)


class Level(NamedTuple):
    """A bound of a quantity: its name; the bound in units of its counter, or a share of the limit; for how many seconds
    it must be exceeded."""
    name: str
    bound: float
    is_share: bool
    seconds: int

    @property
    def quantity(self) -> Quantity:
        """What is compared."""
        return QUANTITIES[self.name]

    def filter(self) -> str:
        """Returns LTTng's filter for the samples that it needs."""
        if self.quantity.event == SAMPLE:
            return f"queue > {self.bound:.0f}"
        names = [*self.quantity.counters, *([self.quantity.limit] if self.is_share else [])]
        return " || ".join(f'name == "{name}"' for name in names if name != HOST_MEMORY)

    def fields(self) -> Tuple[str, ...]:
        """Returns the fields that it needs: the name and the value of a sample."""
        return ("pid", "queue") if self.quantity.event == SAMPLE else ("name", "value")


def is_level(text: str) -> bool:
    """Returns whether an argument of `--when` is meant as a level."""
    return ">" in text and "/" not in text


def level(text: str) -> Level:
    """Returns the level; raises ValueError with the mistake."""
    found = FORM.fullmatch(text.strip())
    if not found:
        raise ValueError("must be like `queue > 10000 for 5s`")
    name, number, unit, seconds = found.groups()
    if name not in QUANTITIES:
        raise ValueError(f"{name!r} must be one of {', '.join(QUANTITIES)}")
    quantity = QUANTITIES[name]
    if unit not in quantity.units:
        wanted = ", ".join(one or "none" for one in quantity.units)
        raise ValueError(f"the unit of {name} must be {'one of ' if len(quantity.units) > 1 else ''}{wanted}")
    if name == SILENCE and seconds:
        raise ValueError("silence has no `for`: write `silence > 5s`")
    is_share = unit == "%" and bool(quantity.limit)
    scale = 0.01 if is_share else SIZES.get(unit, quantity.scale)
    return Level(name, float(number) * scale, is_share, int(seconds or 0))


class Watched:
    """The samples of a node that a level is compared with. `limit`: the limit of the quantity, if that is not a
    counter."""

    def __init__(self, of: Level, limit: Optional[float] = None) -> None:
        self.of, self.limit = of, limit
        self.values: Dict[str, float] = {}
        # Since when the bound is exceeded, and the last such sample, by process; those that were reported.
        self.since: Dict[str, Tuple[float, float]] = {}
        self.fired: Set[str] = set()
        # The last sample of any kind.
        self.last: Optional[float] = None

    def note(self, name: str, value: float, now: float) -> str:
        """Takes a sample; returns a text if the level has lasted long enough, once each time."""
        self.last = now
        if self.of.name == SILENCE:
            self.fired.clear()
            return ""
        if self.of.quantity.event == SAMPLE:
            return self.compare(name, value, now)
        if name == self.of.quantity.limit:
            self.limit = value
            return ""
        self.values[name] = value
        return self.compare("", sum(self.values.values()) / len(self.values), now)

    def compare(self, key: str, value: float, now: float) -> str:
        """Compares the value of a process, or of the node if `key` is empty."""
        if self.of.is_share and not self.limit:
            return ""
        bound = self.of.bound * (self.limit or 0) if self.of.is_share else self.of.bound
        # A process whose queue is short has no samples.
        for old in [one for one, (_, last) in self.since.items()
                    if now - last > GAP_S or one == key and value <= bound]:
            del self.since[old]
            self.fired.discard(old)
        if value <= bound:
            return ""
        began = self.since.get(key, (now, now))[0]
        self.since[key] = began, now
        if key in self.fired or now - began < self.of.seconds:
            return ""
        self.fired.add(key)
        return f"{key} {self.show(value)}".strip()

    def show(self, value: float) -> str:
        """Returns a value as text."""
        if not self.of.is_share and set(SIZES) <= set(self.of.quantity.units):
            return f"{self.of.name} {size(value)}"
        shown = value / (self.limit or 1) * 100 if self.of.is_share else value / self.of.quantity.scale
        is_percent = self.of.is_share or self.of.quantity.units == ("%",)
        return f"{self.of.name} {shown:.0f}{'%' if is_percent else ''}"

    def silent(self, now: float) -> str:
        """Returns a text if there were samples, but none for as long as the level says."""
        if self.of.name != SILENCE or self.last is None or self.fired or now - self.last <= self.of.bound:
            return ""
        self.fired.add("")
        return f"no samples for {now - self.last:.0f} s"


def examples() -> List[str]:
    """Returns an example of each level, for messages."""
    return [f"'{name} > N{quantity.units[0]}{'' if name == SILENCE else ' for Ns'}'"
            for name, quantity in QUANTITIES.items()]
