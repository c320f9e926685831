"""Notes of libraries: valid ones and malicious ones."""
import struct
import time
import unittest

from hostile import HEADER, library, note, note_of

from dyntrace_command.host.elf import NOTES_MOST, read_semaphores

SECONDS_MOST = 5


class Elf(unittest.TestCase):
    """For any bytes, the result is an answer or a ValueError, in bounded time."""

    def test_semaphores(self) -> None:
        """The semaphores of all probes that have one."""
        elf = library([note("pay", 0x2000), note("plain", 0), note("cancel", 0x2002, "till")])
        self.assertEqual({0x2000: "shop:pay", 0x2002: "till:cancel"}, read_semaphores(elf))

    def test_without_notes(self) -> None:
        """Without notes, there are no semaphores."""
        self.assertEqual({}, read_semaphores(library([])))
        self.assertEqual({}, read_semaphores(library([note("pay", 1)]).replace(b".note.", b".other")))

    def test_other_files(self) -> None:
        """Files that are not 64-bit ELF files."""
        for contents in (b"", b"\x7f", b"\x7fELF\x01" + bytes(100), b"#!/bin/sh\n" * 100, bytes(1000)):
            with self.subTest(contents[:10]), self.assertRaises(ValueError):
                read_semaphores(contents)

    def test_cut(self) -> None:
        """Truncated at each byte."""
        elf = library([note("pay", 0x2000), note("cancel", 0x2002)])
        # The last fields of the last section are not read.
        for length in range(len(elf) - 24):
            with self.subTest(length), self.assertRaises(ValueError):
                read_semaphores(elf[:length])

    def test_garbled(self) -> None:
        """Each byte, and each word of four and eight bytes, is replaced by extreme values."""
        elf = library([note("pay", 0x2000), note("cancel", 0x2002)])
        for width in (1, 4, 8):
            for at in range(5, len(elf) - width):
                for value in (b"\0", b"\x7f", b"\x80", b"\xff"):
                    garbled = elf[:at] + value * width + elf[at + width:]
                    try:
                        read_semaphores(garbled)
                    except ValueError:
                        pass

    def test_absurd_header(self) -> None:
        """The section table, or its names, lie outside of the file."""
        for at, form, value in ((0x28, "<Q", 2**64 - 1), (0x28, "<Q", 2**63), (0x28, "<Q", 2**40),
                                (0x3c, "<H", 65535), (0x3e, "<H", 65535)):
            elf = bytearray(library([note("pay", 0x2000)]))
            struct.pack_into(form, elf, at, value)
            with self.subTest(at=at, value=value), self.assertRaises(ValueError):
                read_semaphores(bytes(elf))

    def test_one_section_65535_times(self) -> None:
        """Entries of size 0 are all the same entry."""
        elf = bytearray(library([note("pay", 0x2000)]))
        struct.pack_into("<HHH", elf, 0x3a, 0, 65535, 1)
        began = time.monotonic()
        self.assertEqual({}, read_semaphores(bytes(elf)))
        self.assertLess(time.monotonic() - began, SECONDS_MOST)

    def test_endless_section(self) -> None:
        """The section ends after the end of the file."""
        elf = bytearray(library([note("pay", 0x2000)]))
        struct.pack_into("<Q", elf, len(elf) - 32, 2**64 - 1)
        with self.assertRaises(ValueError):
            read_semaphores(bytes(elf))

    def test_notes_of_odd_sizes(self) -> None:
        """Notes without space for the addresses, without names, longer than the file."""
        for description in (b"", bytes(23), bytes(24), bytes(24) + b"shop"):
            with self.subTest(description), self.assertRaises(ValueError):
                read_semaphores(library([note_of(description)]))
        for at in (0, 4):
            odd = bytearray(note("pay", 0x2000))
            struct.pack_into("<I", odd, at, 2**32 - 1)
            with self.subTest(at), self.assertRaises(ValueError):
                read_semaphores(library([bytes(odd), note("cancel", 0x2002)]))

    def test_names_that_are_no_text(self) -> None:
        """Names must be UTF-8."""
        with self.assertRaises(ValueError):
            read_semaphores(library([note("pay", 1).replace(b"shop", b"\xff\xfe\xfd\xfc")]))

    def test_too_many_notes(self) -> None:
        """As many notes as fit into a library of the maximum size."""
        began = time.monotonic()
        with self.assertRaisesRegex(ValueError, "too many notes"):
            read_semaphores(library([note("pay", 0x2000)] * (NOTES_MOST + 1)))
        self.assertLess(time.monotonic() - began, SECONDS_MOST)

    def test_notes_that_are_the_header(self) -> None:
        """A section may be anywhere in the file, even at its header."""
        elf = bytearray(library([note("pay", 0x2000)]))
        struct.pack_into("<QQ", elf, len(elf) - 40, 0, HEADER)
        with self.assertRaises(ValueError):
            read_semaphores(bytes(elf))
