"""How often something may happen: at most so many times in a span of time, and never twice within ten seconds."""
from typing import Iterable, List, NamedTuple

SPANS = {"minute": 60, "hour": 3600, "day": 86400}
REST_S = 10


class AtMost(NamedTuple):
    """So many times in so many seconds."""
    most: int
    span: int

    def show(self) -> str:
        """Returns it as people write it."""
        return f"{self.most}/{next(name for name, span in SPANS.items() if span == self.span)}"


class Rate:
    """Keeps the times that count. They are wall clock time, since they are told after a restart, too."""

    def __init__(self, limit: AtMost, before: Iterable[float] = ()) -> None:
        self.limit = limit
        self.times: List[float] = sorted(before)
        self.tried = 0.0

    def allows(self, now: float) -> bool:
        """Returns whether it may happen now. Times that are in the future, as after a change of the clock, do not
        count."""
        self.times = [time for time in self.times if now - self.limit.span < time <= now]
        latest = max([self.tried, *self.times])
        return len(self.times) < self.limit.most and not 0 <= now - latest < REST_S

    def tries(self, now: float) -> None:
        """Somebody tries it now, perhaps in vain."""
        self.tried = now

    def took(self, now: float) -> None:
        """It has happened."""
        self.times.append(now)

    def is_spent(self) -> bool:
        """Returns whether it has happened as often as it may."""
        return len(self.times) >= self.limit.most
