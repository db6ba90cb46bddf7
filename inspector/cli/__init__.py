"""The command line, as fixed in its contract; the only package that writes to stdout.

Every command imports what it needs when it runs: `show` must not pay for Qt. Exit codes: 0 done, 1 the answer
is "no", 2 wrong usage, 3 the input could not be read, 4 the output could not be written, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from inspector.cli.common import (
    DONE,
    INTERRUPTED,
    UnsaidError,
    as_checkpoint_error,
    complain_of,
    exit_code,
    prepare_streams,
    say_failure,
)
from inspector.cli.display import display_for
from inspector.cli.parser import parse
from inspector.errors import CancelledError, CheckpointError


def main(arguments: Sequence[str] | None = None) -> int:
    prepare_streams()
    options = argparse.Namespace()
    try:
        options = parse(list(sys.argv[1:] if arguments is None else arguments))
        command: Callable[[argparse.Namespace], int] = options.run
        with display_for(options) as display:
            options.display = display
            return command(options)
    except (KeyboardInterrupt, CancelledError):
        return INTERRUPTED
    except BrokenPipeError:
        return DONE
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported in one line
        failure = as_checkpoint_error(error)
        _report(failure, options)
        return exit_code(failure)


def _report(failure: CheckpointError, options: argparse.Namespace) -> None:
    if getattr(options, "json", False) and not isinstance(failure, UnsaidError):
        files = getattr(options, "files", None) or [getattr(options, "file", None)]
        with suppress(BrokenPipeError, UnsaidError):  # the exit code says as much
            say_failure(failure, files[0])
    complain_of(failure)
