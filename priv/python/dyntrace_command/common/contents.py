"""Hides the contents of a node's texts: an exit reason can contain the state of a process, and so keys and passwords.
The viewer has the same rules, viewer/shared/contents.h; test/support/contents.tsv has examples.
"""
import re
from typing import Match, Optional

# Numbers with more digits, longer lists of numbers, and longer words with a digit may be keys.
DIGITS_MOST, NUMBERS_MOST, WORD_MOST = 15, 8, 31

NUMBER = r"-?\d+(?:\.\d+)?"
PIECES = re.compile(rf'''
    (?P<kept> (?<=\{{file,) "[\w./+-]{{1,70}}\.(?:erl|exs?|[yxh]rl)"
      | \#(?:Ref|Port|Fun)<[\w.@]{{0,58}}> | <[\d.]{{0,58}}> )
  | (?P<string> "(?:\\.|(?!\.\.\.\Z)[^"\\])* "? )
  | (?P<binary> << (?: "(?:\\.|(?!\.\.\.\Z)[^"\\])*"? | (?!>>|\.\.\.\Z)[^"] )* (?:>>)? )
  | (?P<pem> -----BEGIN .*? (?=-----END|\Z) )
  | (?P<word> (?: [A-Za-z] | \d+(?=[A-Za-z]) | (?<=[\w@])\d ) [A-Za-z0-9+/=]* )
  | (?P<numbers> (?<![\w@]){NUMBER} (?: ,[ \n]*{NUMBER} )* ) (?P<cut> ,? (?:\.\.\.)?\Z )?
''', re.ASCII | re.DOTALL | re.VERBOSE)


def hide(text: str) -> str:
    """Returns the text with only the shape of its binaries, strings and long numbers."""
    return PIECES.sub(shape, text)


def shape(piece: "Match[str]") -> str:
    """Returns the replacement of a piece."""
    found, kind = piece.group(), piece.lastgroup
    if kind == "string":
        return counted("[{}]", characters(found), "character") if characters(found) else '""'
    if kind == "binary":
        parts = re.findall(r'"(?:\\.|[^"\\])*"?|(?<![A-Za-z])\d[\w:/]*', found, re.ASCII | re.DOTALL)
        size = sum(characters(part) if part[0] == '"' else 1 for part in parts)
        return counted("<<{}>>" if found.endswith(">>") else "<<{}", size, "byte")
    if kind == "pem":
        return "-----BEGIN..."
    if kind == "word":
        is_key = len(found) > WORD_MOST and re.search(r"\d", found, re.ASCII)
        return counted("[{}]", len(found), "character") if is_key else found
    return found if kind == "kept" else numbers(piece.group("numbers"), piece.group("cut"))


def counted(form: str, count: int, what: str) -> str:
    """Returns a shape with a size."""
    return form.format(f"{count} {what}{'s' * (count != 1)}")


def characters(string: str) -> int:
    """Returns the number of characters of a string, without its quotes."""
    return len(re.findall(r'\\.|[^"\\]', string, re.DOTALL))


def numbers(row: str, cut: Optional[str]) -> str:
    """Returns the replacement of numbers separated by commas; `cut` is not None if the text was cut after them."""
    count = row.count(",") + 1
    if count > NUMBERS_MOST or (count > 1 and cut is not None):
        return f"{count} integers{cut or ''}"
    hidden = re.sub(NUMBER, lambda one: "integer()" if len(one.group()) > DIGITS_MOST else one.group(), row)
    return hidden + (cut or "")
