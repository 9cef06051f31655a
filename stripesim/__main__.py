"""Entry point: errors that a user can mend become one line each and exit status 2."""

import os
import sys
import warnings
from typing import Any

#: Environment variable with a date for reproducible builds, and its largest value: the year 9999.
_DATE_KEY = "SOURCE_DATE_EPOCH"
_DATE_MAX_S = 253402300799


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        # Asked for by scripts, often: nothing is loaded for it.
        from stripesim._version import __version__

        print(__version__)
        sys.exit(0)
    _check_environment()
    warnings.showwarning = _print_warning
    from stripesim.cli.app import app

    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Closed by whoever started the program.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open for as long as the program runs
        elif hasattr(stream, "reconfigure"):
            # A terminal that lacks a letter shows a question mark instead of ending the run.
            stream.reconfigure(errors="replace")
    try:
        # Not standalone: usage errors come here and are reported in one line like all others.
        status = app(standalone_mode=False)
    except BrokenPipeError:
        # The reader of a pipe has seen enough, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except SystemExit as stop:
        # Typer turns a pipe that its reader has closed into status 1.
        if isinstance(stop.__context__, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(141)
        raise
    except (ValueError, OSError) as error:
        # Every error of stripesim that is about the input is a ValueError with a message for the user.
        if os.environ.get("STRIPESIM_DEBUG"):
            raise
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except MemoryError as error:
        if os.environ.get("STRIPESIM_DEBUG"):
            raise
        # Of NumPy's the text says how much was wanted.
        reason = " ".join(str(error).split()) or "no details"
        print(
            f"out of memory ({reason}): ask for a smaller cluster or fewer requests",
            file=sys.stderr,
        )
        sys.exit(1)
    except Exception as error:
        # Typer brings its own copy of click, so its errors are known by what they can do, not by class.
        if type(error).__name__ == "Abort":
            print("stopped", file=sys.stderr)
            sys.exit(130)
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        command = "stripesim" if context is None else context.command_path
        # Without a message, as with no arguments at all, the help has been printed already.
        if message := error.format_message():
            print(f"{message} (see {command} --help)", file=sys.stderr)
        sys.exit(2)
    sys.exit(status if isinstance(status, int) else 0)


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _check_environment() -> None:
    """Refuse a date that libraries would stumble over when they are loaded."""
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
