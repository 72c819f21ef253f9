"""The command line: one command a file.

In: words. Out: what the harness does with them, and an exit status. It may import every other
folder, but a command imports it only when it is called: `--help` imports all commands.
"""

import importlib
import os
import sys
from io import TextIOWrapper

import click

from ..errors import UserError, if_full

_COMMANDS = (
    "train-eval", "run", "plan", "work", "overhead", "regress", "score", "report", "compare",
    "show", "export", "prepare", "sample", "new", "validate", "ls", "doctor", "clean",
)  # fmt: skip


class _Lazy(click.Group):
    """Imports the module of a command when the command or its help is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            return None
        module = importlib.import_module(f".{cmd_name.replace('-', '_')}", __name__)
        command: click.Command = module.command
        return command


@click.group(
    cls=_Lazy,
    commands=[click.Command(name) for name in _COMMANDS],
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(package_name="smmd-bench", prog_name="smmd-bench")
def cli() -> None:
    """Does this training loss make a language model better with numbers?

    \b
    Examples:
      smmd-bench train-eval --task arithmetic --losses ce,ntl,smmd
      smmd-bench report runs/NAME
      smmd-bench ls losses
    """
    os.environ["MPLBACKEND"] = "agg"  # figures need no display, nor a backend that is installed


def main() -> None:
    """Entry point: a user's mistake is one sentence and status 2."""
    for stream in (sys.stdout, sys.stderr):  # "?" for a character that the encoding lacks
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
    try:
        sys.exit(cli(standalone_mode=False) or 0)
    except UserError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        unusable = f"A file cannot be used ({' '.join(what.split())}): check its path, its "
        unusable += "permissions and the space on its disk."
        click.echo(f"Error: {if_full(error, error.filename) or unusable}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt) as error:
        from .interruption import farewell

        said, status = farewell(error)
        click.echo(said, err=True)
        sys.exit(status)
    except (Exception, SystemExit) as error:
        from .plugin_failure import describe_plugin_failure

        if (failure := describe_plugin_failure(error)) is None:
            raise
        click.echo(f"Error: {failure}", err=True)
        sys.exit(2)
