"""Run the command line, reporting each user error in one line with exit status 2."""

import atexit
import gc
import os
import sys
import warnings
from typing import Any

from stripesim.scenarios.work.garbage import collect_rarely

#: Environment variable that fixes the date of reproducible builds, and its largest value (year 9999) [s].
_DATE_KEY = "SOURCE_DATE_EPOCH"
_DATE_MAX_S = 253402300799


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        # Scripts call this often, so it loads nothing else.
        from stripesim._version import __version__

        print(__version__)
        sys.exit(0)
    _check_environment()
    warnings.showwarning = _print_warning
    collect_rarely()
    # Pydantic would read the metadata of all installed packages to find plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # NumPy would start a thread per core that spins for a while, and no matrix here is large enough for them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Python would also look for garbage at the end, where the system takes back all memory anyway.
    atexit.register(gc.freeze)
    from stripesim.cli.app import app_of

    _mend_streams()
    try:
        # Without standalone mode, Typer passes usage errors to the handlers below.
        status = app_of(sys.argv[1:])(standalone_mode=False)
    except SystemExit as stop:
        # Typer reports a closed pipe as exit status 1.
        if isinstance(stop.__context__, BrokenPipeError):
            sys.exit(_status_of_closed_pipe())
        raise
    except (Exception, KeyboardInterrupt) as error:
        exit_status = _reported(error)
        if exit_status is None:
            raise
        sys.exit(exit_status)
    sys.exit(status if isinstance(status, int) else 0)


def _mend_streams() -> None:
    """Make writing to the terminal safe, even if it is closed or lacks characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # The calling process closed this stream.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open for as long as the program runs
        elif hasattr(stream, "reconfigure"):
            # Print "?" for a character that the terminal cannot show instead of failing.
            stream.reconfigure(errors="replace")


def _status_of_closed_pipe() -> int:
    """Return the exit status after the reader closed the pipe, as `head` does. Write nothing more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def _reported(error: BaseException) -> int | None:
    """Print an error for users, and return the exit status, or None for an error in the program."""
    is_debugging = bool(os.environ.get("STRIPESIM_DEBUG"))
    match error:
        case BrokenPipeError():
            return _status_of_closed_pipe()
        case ValueError() | OSError() | MemoryError() if is_debugging:
            return None
        case ValueError() | OSError():
            # Errors in user input are ValueErrors whose message is meant for the user.
            print(error, file=sys.stderr)
            # Numbers that fail the audit have a status of their own.
            return getattr(error, "exit_status", 2)
        case MemoryError():
            # NumPy's message states the size of the allocation that failed.
            from stripesim.models.problems import one_line

            reason = one_line(error) if str(error) else "no details"
            print(
                f"out of memory ({reason}): simulate a smaller cluster or fewer requests",
                file=sys.stderr,
            )
            return 1
    # Typer bundles its own copy of click, so recognise its errors by their attributes, not their class.
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        print("stopped", file=sys.stderr)
        return 130
    return _reported_usage(error)


def _reported_usage(error: BaseException) -> int | None:
    """Print an error of usage, and return the exit status, or None for another error."""
    if not hasattr(error, "format_message"):
        return None
    context = getattr(error, "ctx", None)
    command = "stripesim" if context is None else context.command_path
    # An empty message means that Typer has already printed the help.
    if message := error.format_message():
        # A group without a command shows its help.
        is_help = type(error).__name__ == "NoArgsIsHelpError"
        hint = "" if is_help else f" (see {command} --help)"
        print(f"{message}{hint}", file=sys.stderr)
    return 2


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _check_environment() -> None:
    """Reject a SOURCE_DATE_EPOCH that libraries would fail on while loading."""
    date = os.environ.get(_DATE_KEY)
    if date is None:
        return
    if (
        date.isascii()
        and date.isdigit()
        and len(date) <= len(str(_DATE_MAX_S))
        and int(date) <= _DATE_MAX_S
    ):
        return
    wanted = f"a whole number of seconds since 1970, at most {_DATE_MAX_S}"
    print(f"{_DATE_KEY}: got {date[:40]!r}, wanted {wanted}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
