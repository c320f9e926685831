"""A rate limit: at most N times per span of time, and never twice within ten seconds."""
from typing import Iterable, List, NamedTuple

SPANS = {"minute": 60, "hour": 3600, "day": 86400}
REST_S = 10


class AtMost(NamedTuple):
    """At most `most` times in `span` seconds."""
    most: int
    span: int

    def show(self) -> str:
        """Returns the limit as `--at-most` takes it."""
        return f"{self.most}/{next(name for name, span in SPANS.items() if span == self.span)}"


class Rate:
    """Enforces the limit. Times are wall clock time, so that they are valid after a restart, too."""

    def __init__(self, limit: AtMost, before: Iterable[float] = ()) -> None:
        self.limit = limit
        self.times: List[float] = sorted(before)
        self.tried = 0.0

    def allows(self, now: float) -> bool:
        """Returns whether the limit allows another snapshot now. Times in the future, as after a change of the clock,
        do not count."""
        self.times = [time for time in self.times if now - self.limit.span < time <= now]
        latest = max([self.tried, *self.times])
        return len(self.times) < self.limit.most and not 0 <= now - latest < REST_S

    def tries(self, now: float) -> None:
        """Records an attempt, which may fail."""
        self.tried = now

    def took(self, now: float) -> None:
        """Records a successful attempt."""
        self.times.append(now)

    def is_spent(self) -> bool:
        """Returns whether the limit is reached."""
        return len(self.times) >= self.limit.most
