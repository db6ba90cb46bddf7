"""The command line, as fixed in its contract; the only package that writes to stdout.

Every command imports what it needs when it runs: `show` must not pay for Qt. Exit codes: 0 done, 2 wrong
usage, 3 the input could not be read, 4 the output could not be written, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from inspector.cli.messages import DONE, INTERRUPTED, complain, exit_code
from inspector.cli.options import parse
from inspector.errors import CancelledError, CheckpointError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; no failure leaves as a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        options = parse(list(sys.argv[1:] if arguments is None else arguments))
        command: Callable[[argparse.Namespace], int] = options.run
        return command(options)
    except (KeyboardInterrupt, CancelledError):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe has seen enough; Python must not complain again while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except CheckpointError as error:
        complain(str(error))
        return exit_code(error)
