"""Functions as users name them on the command line."""
import argparse
import unittest

from dyntrace_command.cli.arguments import function as of_next
from dyntrace_command.common.functions import Function, event_filter, parsed


class Functions(unittest.TestCase):
    """The meaning of a text, and the pattern of its events."""

    def test_patterns(self) -> None:
        """A filter of LTTng has the text of the events, with at most one star."""
        for text, pattern in [("shop:pay/2", "shop:pay/2"), ("shop:pay", "shop:pay/*"), ("shop:pay/_", "shop:pay/*"),
                              ("shop:_", "shop:*"), ("shop:_/2", "shop:*/2")]:
            function = parsed(text)
            assert function
            self.assertEqual(f'entry == "{pattern}"', event_filter([function]), text)

    def test_quotes(self) -> None:
        """Atoms as Erlang writes them, with or without the quotes that a shell removes."""
        for text in ("Elixir.Shop:paid?/1", "'Elixir.Shop':'paid?'/1"):
            self.assertEqual(Function("'Elixir.Shop'", "'paid?'", "1"), parsed(text))
        self.assertEqual(Function("'Elixir.Shop'", "é_2@", "_"), parsed("Elixir.Shop:é_2@"))

    def test_refused(self) -> None:
        """Texts that do not name a function, and characters that are special in a filter."""
        for text in ("shop", "shop:", ":pay/1", "shop:pay/x", "shop:pay/1/2", "shop:pa y/1", "sh*p:pay", "shop:p*y",
                     'shop:"pay"', "shop:pay\\", "shop:pay/1\n"):
            self.assertIsNone(parsed(text), text)

    def test_next(self) -> None:
        """A request begins in a function of any arity."""
        self.assertEqual("'Elixir.Shop':'paid?'", of_next("Elixir.Shop:paid?"))
        for text in ("shop:pay/1", "shop:_", "shop"):
            self.assertRaises(argparse.ArgumentTypeError, of_next, text)
