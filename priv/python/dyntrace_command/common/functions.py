"""Functions as people name them, MODULE:FUNCTION/ARITY: for a filter of LTTng, for the node's shell, and whether a node
traces them."""
import re
from typing import NamedTuple, Optional, Sequence

ANY = "_"

# An atom that Erlang writes without quotes; those with quotes; ANY.
WRITTEN = r"[a-zß-öø-ÿ][A-Za-z0-9_@À-ÖØ-öø-ÿ]*|'.*'|_"


class Function(NamedTuple):
    """The parts, as Erlang writes them. The function and the arity may be ANY."""
    module: str
    name: str
    arity: str = ANY

    def show(self) -> str:
        """Returns it for people."""
        return f"{self.module}:{self.name}" + ("" if self.arity == ANY else f"/{self.arity}")

    def erlang(self) -> str:
        """Returns it as a term of Erlang, of the option `functions`."""
        parts = [self.module, self.name, self.arity]
        return "{" + ", ".join(f"'{ANY}'" if part == ANY else part for part in parts) + "}"

    def glob(self) -> str:
        """Returns a pattern of the text that events have. It has one star at most."""
        name, arity = ("*" if part == ANY else part for part in (self.name, self.arity))
        return f"{self.module}:{name}/{arity}".replace("*/*", "*")

    def is_in(self, traced: "Function") -> bool:
        """Returns whether all that it means is traced, or part of it, if it means any."""
        parts = [(self.name, traced.name), (self.arity, traced.arity)]
        return self.module == traced.module and all(ANY in pair or pair[0] == pair[1] for pair in parts)


def parsed(text: str) -> Optional[Function]:
    """Returns the function of a text; None if that is no name. Characters that mean something to LTTng's filters are in
    no usual name."""
    found = re.fullmatch(r"([^:\s\"*\\]+):([^:\s/\"*\\]+)(?:/(\d{1,3}|_))?", text)
    return Function(atom(found.group(1)), atom(found.group(2)), found.group(3) or ANY) if found else None


def atom(text: str) -> str:
    """Returns it as Erlang writes it. The quotes that 'Elixir.Shop' needs are taken away by shells."""
    return text if re.fullmatch(WRITTEN, text) else f"'{text}'"


def event_filter(functions: Sequence[Function]) -> str:
    """Returns a filter of LTTng for the events of these functions."""
    return " || ".join(f'entry == "{function.glob()}"' for function in functions)
