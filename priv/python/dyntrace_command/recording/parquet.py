"""Converts rows to Parquet, by DuckDB, while babeltrace2 writes them into a pipe."""
import contextlib
import json
import mmap
import os
import shutil
import sys
from typing import Iterator, List

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.tables import rows
from dyntrace_command.common.terminal import last_lines
from dyntrace_command.host.children import temporary_folder
from dyntrace_command.host.execution import STEP_S, Program, Started, run, until
from dyntrace_command.host.files import closing, write_file

# The types of the columns in DuckDB.
TYPES = {"text": "VARCHAR", "integer": "BIGINT", "boolean": "BOOLEAN"}

MODULE = [sys.executable, "-I", "-c"]
# Seconds that DuckDB may take to write what it has read.
WRITTEN_S = 3600
# Bytes of a row.
LINE_MOST = 1 << 20


def conversion_sql(source: str, result: str, temporary: str) -> str:
    """Returns the statements that convert a file of rows. DuckDB would keep all that it reads from a pipe as JSON, but
    not as CSV: lines of one column, because no row contains the delimiter. More threads would only need more memory."""
    columns = json.dumps({name: TYPES[kind] for name, kind, *_ in rows("row_columns")})
    return (f"SET temp_directory = {quoted(temporary)}; SET threads = 1; SET preserve_insertion_order = false; "
            f"COPY (SELECT unnest(from_json(line, {quoted(columns)})) FROM read_csv({quoted(source)}, "
            f"columns = {{line: 'VARCHAR'}}, header = false, auto_detect = false, delim = '\x01', quote = '', "
            f"escape = '', max_line_size = {LINE_MOST})) "
            f"TO {quoted(result)} (FORMAT parquet, COMPRESSION zstd);")


def quoted(text: str) -> str:
    """Returns the text as a string in SQL."""
    return "'" + text.replace("'", "''") + "'"


def duckdb(statements: str) -> List[str]:
    """Returns the command line that executes SQL; raises Failure if DuckDB is not installed."""
    program = shutil.which("duckdb")
    if program:
        return [program, "-init", os.devnull, "-bail", "-c", statements]
    if run(Program([*MODULE, "import duckdb"])).status == 0:
        return [*MODULE, "import duckdb, sys; duckdb.execute(sys.argv[1])", statements]
    raise Failure("no_duckdb")


class Conversion:
    """A running DuckDB. `rows`: the pipe that it reads. The pipe stays open until `close`, so that neither side waits
    for the other to open it."""

    def __init__(self, place: str) -> None:
        self.rows, self.result, self.messages = (os.path.join(place, name) for name in ("rows", "result", "messages"))
        os.mkfifo(self.rows, 0o600)
        command = duckdb(conversion_sql(self.rows, self.result, place))
        self.writer = os.open(self.rows, os.O_RDWR)
        with closing(os.open(self.messages, os.O_WRONLY | os.O_CREAT, 0o600)) as messages:
            self.program = Started(Program(command), -1, messages)

    def has_ended(self) -> bool:
        """Returns whether DuckDB has ended."""
        return self.program.has_ended()

    def finish(self) -> None:
        """Waits until DuckDB has written the result; raises Failure if it could not."""
        self.close_rows()
        until(self.has_ended, WRITTEN_S, STEP_S)
        if self.program.status != 0:
            with open(self.messages, encoding="utf-8", errors="replace") as file:
                raise Failure("duckdb", output=last_lines(file.read()))

    def end(self) -> None:
        """Ends DuckDB if it still runs."""
        self.program.end()
        self.close_rows()

    def close_rows(self) -> None:
        """Closes the pipe, so that DuckDB reads its end."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1


@contextlib.contextmanager
def converted(output: str) -> Iterator[Conversion]:
    """Yields a conversion whose result becomes the output file."""
    with temporary_folder() as place:
        conversion = Conversion(place)
        try:
            yield conversion
            conversion.finish()
        except Failure:
            if conversion.program.status not in (None, 0):
                conversion.finish()
            raise
        finally:
            conversion.end()
        with open(conversion.result, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as contents:
            write_file(output, contents)
