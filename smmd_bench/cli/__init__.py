"""The command line: one command a file.

In: words. Out: what the harness does with them, and an exit status. It may import every other
folder, but a command imports it only when it is called: `--help` imports all commands.
"""

import gc
import importlib
import os
import signal
from typing import NoReturn

import click

from ..errors import UserError, end_process, if_full, reason_of

# In the order of a user's days, not of the alphabet.
_SECTIONS = {
    "Daily work": (
        "train-eval", "run", "report", "compare", "show", "score", "ls", "clean", "doctor",
    ),
    "Write your own": ("new", "validate", "sample"),
    "Large machines": ("prepare", "overhead"),
    "Extras": ("regress", "power", "export"),
}  # fmt: skip
_FILES = {"run": "train_eval", "sample": "prepare", "power": "compare"}
"""Commands in the file of another one, by their own name."""


class _Sections(click.Group):
    """Imports the module of a command when the command or its help is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            return None
        file = _FILES.get(cmd_name, cmd_name.replace("-", "_"))
        module = importlib.import_module(f".{file}", __name__)
        attribute = cmd_name if cmd_name in _FILES else "command"
        command: click.Command = getattr(module, attribute)
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        for title, names in _SECTIONS.items():
            rows = []
            for name in names:
                command = self.get_command(ctx, name)
                assert command is not None
                rows.append((f"{name:<10}", command.get_short_help_str(99)))
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(
    cls=_Sections,
    commands=[click.Command(name) for names in _SECTIONS.values() for name in names],
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": 100,
    },
)
@click.version_option(package_name="smmd-bench", prog_name="smmd-bench")
def cli() -> None:
    """Does this training loss make a language model better with numbers?"""
    # Figures need no display, nor a backend that is installed.
    os.environ["MPLBACKEND"] = "agg"


def main() -> NoReturn:
    """Entry point of the command."""
    end_process(run_command)


def run_command() -> int:
    """Run what `sys.argv` says: a user's mistake is one sentence and status 2; Ctrl-C is one and
    130."""
    # A third of the time of large imports would be a search for garbage.
    gc.set_threshold(50_000)
    # Schedulers send SIGTERM before they kill: it ends a run as Ctrl-C does.
    handler = signal.signal(signal.SIGTERM, _terminate)
    try:
        status = cli(standalone_mode=False) or 0
    except (click.Abort, KeyboardInterrupt) as error:
        how, number = "Interrupted", signal.SIGINT
        # click raises an Abort in place of the interrupt, which is then its cause.
        if _Terminated in (type(error), type(error.__cause__)):
            how, number = "Terminated", signal.SIGTERM
        click.echo(
            f"{how}; what is finished is kept: the same command goes on.", err=True
        )
        # As a shell says it of a process that a signal has ended.
        status = 128 + number
    except click.ClickException as error:
        error.show()
        status = 2
    except (UserError, OSError) as error:
        click.echo(f"Error: {_explain(error)}", err=True)
        status = 2
    finally:
        signal.signal(signal.SIGTERM, handler)
    return int(status)


class _Terminated(KeyboardInterrupt):
    """SIGTERM: the machine is wanted back."""


def _terminate(*_: object) -> None:
    # A second signal would cut off the end that the first one has begun.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Terminated


def _explain(error: UserError | OSError) -> str:
    """A user's mistake as a sentence: a UserError's own, or a file's."""
    if isinstance(error, UserError):
        return str(error)
    place, why = error.filename or "", error.strerror or reason_of(error)
    unusable = (
        f"A file {place} cannot be used ({why}): check its path and its permissions."
    )
    return str(if_full(error, error.filename) or unusable)
