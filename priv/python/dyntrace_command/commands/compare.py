"""`dyntrace compare`: shows what differs between two recordings or reports by more than noise."""
import argparse
import contextlib
import json
import os
from typing import Any

from dyntrace_command.common.failures import Failure, reason
from dyntrace_command.common.json_output import put
from dyntrace_command.common.terminal import clean, print_table, say
from dyntrace_command.host.children import temporary_folder
from dyntrace_command.host.files import MB, checked_output, read_regular, write_file
from dyntrace_command.recording import comparison_tables
from dyntrace_command.recording.mirror import mirrored
from dyntrace_command.recording.process_stacks import saved
from dyntrace_command.recording.rendering import draw
from dyntrace_command.recording.report_comparison import Comparison, compared
from dyntrace_command.recording.report_numbers import Recorded, check

# Bytes of a report.
REPORT_MOST = 1000 * MB


def compare(options: argparse.Namespace) -> None:
    """Prints the changes from one recording or report to another, and writes a page."""
    output = options.output and checked_output(options.output)
    before, after = recorded(options.before), recorded(options.after)
    found = checked_comparison(before, after)
    if options.json:
        put(comparison_tables.as_json(before, after, found))
        return
    if output:
        write_file(output, comparison_tables.page(before, after, found))
    show(found)
    if output:
        print(output)


def show(found: Comparison) -> None:
    """Prints the tables."""
    for rows in (comparison_tables.table(found), comparison_tables.finding_table(found)):
        if len(rows) > 1:
            print_table([[clean(text) for text in row] for row in rows])
            print()
    print(comparison_tables.summary(found))


def recorded(path: str) -> Recorded:
    """Returns the report of a recording, or the one in a file."""
    if not os.path.isfile(path):
        with temporary_folder() as temporary, mirrored([path]) as mirror:
            report = os.path.join(temporary, "report.json")
            texts = draw(mirror, report, saved([path]))
            for text in [*mirror.remarks, *texts]:
                say(text)
            return Recorded(clean(path), read_report(report, path))
    return Recorded(clean(path), read_report(path, path))


def read_report(path: str, named: str) -> Any:
    """Reads a report."""
    try:
        report = json.loads(read_regular(path, REPORT_MOST))
        # Raises ValueError for numbers that JSON does not have, such as NaN.
        json.dumps(report, allow_nan=False)
        return report
    except OSError as error:
        raise Failure("no_report", file=clean(named), why=reason(error)) from None
    except (ValueError, RecursionError):
        raise Failure("no_report", file=clean(named), why="it is not JSON") from None


def checked_comparison(before: Recorded, after: Recorded) -> Comparison:
    """Returns the changes; raises Failure if one of the reports can't be compared."""
    for of in (before, after):
        why = "it is damaged, or not a report"
        with contextlib.suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            why = check(of) or differs_from_itself(of)
        if why:
            raise Failure("no_report", file=of.source, why=why)
    return compared(before, after)


def differs_from_itself(of: Recorded) -> str:
    """Raises an error if the report is damaged, so that the failure can name it; returns an empty text."""
    compared(of, of)
    return ""
