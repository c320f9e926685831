"""Unit tests of the command: atoms and pids in the memory of a VM."""
import struct
import unittest

from dyntrace_command.node.vm_structures import VmStructures, quoted
from test_vm_memory import DATA, NORMAL_EXIT, SLOTS, TABLE, Image, atom


class Structures(unittest.TestCase):
    """Atoms and pids."""

    def setUp(self) -> None:
        self.image = Image()
        self.image.add_tables("shop", "init", "till")

    def tearDown(self) -> None:
        self.image.file.close()

    def test_other_atoms(self) -> None:
        """Memory that looks like the first atom of another release does not change how atoms are read."""
        binary = self.image.add(bytes(12) + struct.pack("<QQ", 4 << 3, 0)) + 10
        other = self.image.add(struct.pack("<QQi4xhhiQ", 0, 0, 0, 0, 0, 0, binary))
        segments = self.image.add_words(self.image.add_words(other))
        self.image.write(DATA + 1536, struct.pack("<iiiiQ", 0, 1024, 1 << 20, 300, segments))
        self.image.add_process(1, 0x13, [])
        structures = VmStructures(self.image, NORMAL_EXIT)
        self.assertEqual(["false", "till"], [structures.atom(atom(index)) for index in (0, 4)])
        self.assertFalse(structures.is_boxed)

    def test_pids(self) -> None:
        """Words of pids in OTP 25, and in a table of 1,048,576 slots of later releases."""
        before = VmStructures(self.image, NORMAL_EXIT, [TABLE, SLOTS, 0, 0, False, 0])
        self.assertEqual(["<0.98.0>", "<0.4550.2>"], [before.pid(0x31000000623), before.pid(0x77000111c63)])
        later = VmStructures(self.image, NORMAL_EXIT, [TABLE, 1 << 20, 0, 0, True, 1])
        self.assertEqual(["<0.0.0>", "<0.103.0>", "<0.131072.0>"], [later.pid(3), later.pid(0x3383), later.pid(0x13)])

    def test_atoms(self) -> None:
        """As Erlang writes them."""
        self.assertEqual(["shop", "'Elixir.Shop'", "'a b'", "'it\\'s'", "'\\x1b'"],
                         [quoted(text) for text in ("shop", "Elixir.Shop", "a b", "it's", "\x1b")])
