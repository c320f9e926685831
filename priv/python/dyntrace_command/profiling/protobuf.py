"""Messages of Protocol Buffers, as some formats of profiles use them."""
from typing import List, Tuple, Union

Field = Tuple[int, Union[int, str, bytes]]


def message(*fields: Field) -> bytes:
    """Returns a message of numbered fields: integers that are not negative, texts, and messages."""
    found: List[bytes] = []
    for number, value in fields:
        if isinstance(value, int):
            found += [varint(number << 3), varint(value)]
        else:
            data = value.encode() if isinstance(value, str) else value
            found += [varint(number << 3 | 2), varint(len(data)), data]
    return b"".join(found)


def varint(value: int) -> bytes:
    """Encodes an integer with seven bits per byte, the lowest first."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
