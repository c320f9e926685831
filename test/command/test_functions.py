"""Functions as users name them on the command line."""
import argparse
import io
import sys
import unittest
from typing import List, Tuple
from unittest import mock

from dyntrace_command.cli.arguments import function as of_next
from dyntrace_command.commands.request import awaited
from dyntrace_command.common.failures import Failure
from dyntrace_command.common.functions import Function, event_filter, parsed
from dyntrace_command.node.node import check_traced
from dyntrace_command.node.status import Status


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

    def test_untraced(self) -> None:
        """Events of calls require that the node traces functions; the groups of the default do not."""
        said, nothing = r"shop@vm \(7\) traces no function, .* of calls\n  next: .*`dyntrace:follow\(", r"\A\Z"
        cases: List[Tuple[List[Tuple[str, str]], List[str], str]] = [
            ([("functions", "0")], ["sends", "calls"], said), ([("functions", "0")], [], nothing),
            ([("functions", "0")], ["all"], nothing), ([], ["calls"], nothing),
            ([("functions", "1"), ("function", "shop:pay/2")], ["calls"], nothing)]
        for lines, groups, expected in cases:
            node = mock.Mock(status=Status(lines), **{"show.return_value": "shop@vm (7)"})
            with mock.patch.object(sys, "stderr", io.StringIO()) as errors:
                check_traced(node, [], groups=groups)
            self.assertRegex(errors.getvalue(), expected)
        with self.assertRaisesRegex(Failure, "untraced_functions"):
            check_traced(mock.Mock(status=Status([("functions", "0")])), [Function("shop", "pay")], groups=["calls"])

    def test_next(self) -> None:
        """A request begins in a function of one arity or, without an arity, of any."""
        for text, shown, condition in [
                ("Elixir.Shop:paid?", "'Elixir.Shop':'paid?'",
                 """(str(arg1, 22) == "'Elixir.Shop':'paid?'/" || str(arg1, 23) == "'Elixir.Shop':'paid?'/")"""),
                ("shop:pay/_", "shop:pay", '(str(arg1, 9) == "shop:pay/" || str(arg1, 10) == "shop:pay/")'),
                ("shop:pay/1", "shop:pay/1", 'str(arg1) == "shop:pay/1"')]:
            wanted = awaited(argparse.Namespace(next=of_next(text)))
            self.assertEqual((f"a call of {shown}", {"ENTRY": condition}), (wanted.name, wanted.words))
        self.assertIn("functions => [{shop, pay, 1}]", Failure(wanted.key, **wanted.values, seconds=1).text)
        for text in ("shop:_", "shop:_/1", "shop", "shop:pay/x"):
            self.assertRaises(argparse.ArgumentTypeError, of_next, text)
