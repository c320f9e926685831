"""Functions written as MODULE:FUNCTION/ARITY: converted to LTTng filters and Erlang terms, and compared with those that
a node traces."""
import re
from typing import NamedTuple, Optional, Sequence

ANY = "_"

# An atom without quotes, an atom with quotes, or ANY.
WRITTEN = r"[a-zß-öø-ÿ][A-Za-z0-9_@À-ÖØ-öø-ÿ]*|'.*'|_"


class Function(NamedTuple):
    """The parts, in Erlang syntax. The function and the arity may be ANY."""
    module: str
    name: str
    arity: str = ANY

    def show(self) -> str:
        """Returns the function as MODULE:FUNCTION/ARITY."""
        return f"{self.module}:{self.name}" + ("" if self.arity == ANY else f"/{self.arity}")

    def erlang(self) -> str:
        """Returns the function as an Erlang term for the option `functions`."""
        parts = [self.module, self.name, self.arity]
        return "{" + ", ".join(f"'{ANY}'" if part == ANY else part for part in parts) + "}"

    def glob(self) -> str:
        """Returns a pattern for the text in events, with at most one star."""
        name, arity = ("*" if part == ANY else part for part in (self.name, self.arity))
        return f"{self.module}:{name}/{arity}".replace("*/*", "*")

    def is_in(self, traced: "Function") -> bool:
        """Returns whether `traced` covers the function; with ANY, whether it covers a part of it."""
        parts = [(self.name, traced.name), (self.arity, traced.arity)]
        return self.module == traced.module and all(ANY in pair or pair[0] == pair[1] for pair in parts)


def parsed(text: str) -> Optional[Function]:
    """Returns the function that a text names, or None if it is invalid. Rejects characters that are special in LTTng's
    filters, which usual names do not have."""
    found = re.fullmatch(r"([^:\s\"*\\]+):([^:\s/\"*\\]+)(?:/(0|[1-9]\d{0,2}|_))?", text)
    return Function(atom(found.group(1)), atom(found.group(2)), found.group(3) or ANY) if found else None


def atom(text: str) -> str:
    """Returns the atom in Erlang syntax. Shells remove the quotes that 'Elixir.Shop' needs."""
    return text if re.fullmatch(WRITTEN, text) else f"'{text}'"


def event_filter(functions: Sequence[Function]) -> str:
    """Returns an LTTng filter for the events of these functions."""
    return " || ".join(f'entry == "{function.glob()}"' for function in functions)
