"""Erlang's terms as bytes, and invalid input from a node."""
import os
import unittest

from dyntrace_command.common.external_terms import Atom, Opaque, decode, encode, text


class Terms(unittest.TestCase):
    """Encoding and decoding of terms."""

    def test_there_and_back(self) -> None:
        """Terms that this command sends."""
        for term in (Atom("ok"), Atom("ö"), -1, 2**31 - 1, b"", b"abc", (), (1, (Atom("a"), [])), [1, [2]], []):
            with self.subTest(term):
                self.assertEqual((term, len(encode(term))), decode(encode(term)))
                self.assertIs(type(term), type(decode(encode(term))[0]))
        self.assertEqual("h€", text(decode(encode("h€"))[0]))

    def test_of_nodes(self) -> None:
        """Terms that nodes send: term_to_binary/1 of OTP 25, without its first byte."""
        node = b"\x77\x0dnonode@nohost"
        for encoded, term in ((b"\x6b\x00\x02hi", [104, 105]), (b"\x61\x07", 7), (b"\x6e\x02\x01\x00\x01", -256),
                              (b"\x6c\x00\x00\x00\x01\x61\x01\x61\x02", [1]), (b"\x64\x00\x01\xe9", Atom("é"))):
            self.assertEqual((term, len(encoded)), decode(encoded))
        for encoded in (b"\x58" + node + bytes(12), b"\x5a\x00\x03" + node + bytes(16), b"\x78" + node + bytes(12),
                        b"\x46" + bytes(8), b"\x71" + node + node + b"\x61\x00", b"\x70\x00\x00\x00\x06ab",
                        b"\x74\x00\x00\x00\x01\x61\x01\x61\x02", b"\x4d\x00\x00\x00\x01\x04\xf0",
                        b"\x6f\x00\x01\x00\x00\x00" + bytes(65536)):
            with self.subTest(encoded):
                self.assertEqual((Opaque(encoded), len(encoded)), decode(encoded))
                self.assertEqual(encoded, encode(decode(encoded)[0]))

    def test_hostile(self) -> None:
        """Truncated, too deep, too long, random bytes: a ValueError in bounded time."""
        whole = encode((Atom("a"), [b"binary", 1], "text"))
        for message in [whole[:cut] for cut in range(len(whole))] + [
                b"\x68\x01" * 100000, b"\x69\xff\xff\xff\xff", b"\x6c\xff\xff\xff\xff", b"\x6d\xff\xff\xff\xff",
                b"\x74\xff\xff\xff\xff", b"\x6f\xff\xff\xff\xff\x00", b"\x70\x00\x00\x00\x00", b"\x77\x01\xff",
                b"\x00"]:
            with self.subTest(message[:10]), self.assertRaises(ValueError):
                decode(message)
        for _ in range(2000):
            try:
                decode(os.urandom(64))
            except ValueError:
                pass
