"""The command line: one command a file, imported only when it is called."""

from __future__ import annotations

import importlib
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING

import click

from ..errors import UserError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMMANDS = {
    "train-eval": ("train_eval", "Fine-tune with each loss, score, and report."),
    "run": ("run", "Run the experiment of a YAML file."),
    "overhead": ("overhead", "Measure step time and memory of each loss."),
    "regress": ("regress", "Check MMLU, SAMSum or any lm-eval task on a run's checkpoints."),
    "score": ("score", "Score completions made elsewhere, and report."),
    "report": ("report", "Make the tables, figures and page of finished runs again."),
    "compare": ("compare", "Compare the cells that two runs share."),
    "show": ("show", "Show one example: what each loss wrote, and its digits."),
    "prepare": ("prepare", "Fetch data and checkpoints ahead of a run."),
    "sample": ("sample", "Print examples of a task."),
    "new": ("new", "Write a task, loss or report of your own, with its test."),
    "validate": ("validate", "Check plugins against their contracts."),
    "ls": ("ls", "List tasks, losses, engines, executors, reports and models."),
    "completion": ("completion_script", "Print what makes a shell complete these commands."),
    "doctor": ("doctor", "Say what works here, what does not, and how to mend it."),
    "clean": ("clean", "List what can go of runs and the cache, and remove it."),
}


class _Lazy(click.Group):
    """Imports a command's module only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f".{_COMMANDS[cmd_name][0]}", __name__)
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.resilient_parsing:  # of completion
            return super().resolve_command(ctx, args)
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from ..errors import did_you_mean

            raise UserError(f"Unknown command '{args[0]}': {did_you_mean(args[0], _COMMANDS)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=text)
            for name, (_, text) in _COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found or super().shell_complete(ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="smmd-bench", prog_name="smmd-bench")
def cli() -> None:
    """Does this training loss make a language model better with numbers?

    \b
    Examples:
      smmd-bench train-eval --task arithmetic --losses ce,ntl,smmd
      smmd-bench report runs/NAME
      smmd-bench ls losses
    """


def main() -> None:
    """Entry point: a user's mistake is one sentence and status 2."""
    _print_what_can_be_printed()
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
        click.echo(
            f"Error: A file cannot be used ({' '.join(what.split())}): check its path, its "
            "permissions and the space on its disk.",
            err=True,
        )
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt) as error:
        from .interruption import farewell

        click.echo(farewell(error), err=True)
        sys.exit(130)


def _print_what_can_be_printed() -> None:
    """Write "?" for a character that the encoding of standard output or error does not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
