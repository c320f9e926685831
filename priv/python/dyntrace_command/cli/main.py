"""Runs a subcommand: sets up streams and the umask, and maps exceptions to exit statuses."""
import os
import sys

from dyntrace_command.cli.subcommands import SUBCOMMANDS, parsed
from dyntrace_command.common.failures import FAILED, INTERRUPTED, STATUSES, Failure
from dyntrace_command.common.json_output import put_error
from dyntrace_command.common.terminal import clean, say
from dyntrace_command.host.files import check_temporary


def open_streams() -> None:
    """Reopens the standard streams: one that was closed (`>&-`) becomes /dev/null, and characters that the locale's
    encoding lacks are written as escapes."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            # Python may have opened another file with this descriptor.
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            os.set_inheritable(number, True)
        encoding = stream.encoding if stream else "utf-8"
        setattr(sys, name, open(number, "w" if number else "r", 1 if number == 2 or os.isatty(number) else -1, encoding,
                                "backslashreplace", closefd=False))


def main() -> int:
    """Runs the command line and returns the exit status."""
    open_streams()
    options = parsed(sys.argv[1:])
    has_json = getattr(options, "json", False)
    # Recordings and output files contain the texts of messages: only their owner may read them.
    os.umask(0o077)
    try:
        check_temporary()
        status = SUBCOMMANDS[options.command].run(options) or 0
        sys.stdout.flush()
        return status
    except Failure as failure:
        if has_json:
            put_error(failure.status, failure.key, failure.cause, failure.step)
        say(failure.text)
        return failure.status
    except KeyboardInterrupt:
        if has_json:
            put_error(INTERRUPTED, "interrupted", STATUSES[INTERRUPTED][0])
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone: `dyntrace nodes | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:
        if has_json:
            put_error(FAILED, "system", clean(str(error)))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        say(f"dyntrace: {clean(str(error))}")
        return FAILED
