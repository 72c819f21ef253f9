"""The command in a process of its own, on a pipe or on a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

COMMAND = str(Path(sys.executable).parent / "smmd-bench")


def call(
    *arguments: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command on pipes; a variable that is empty is left out."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=variables(environment),
    )


def on_terminal(
    *arguments: object, columns: int = 80, cwd: Path | None = None, **environment: str
) -> str:
    """What the command writes on a terminal of that width, which ends well."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env=variables({"TERM": "xterm-256color", "COLUMNS": "", "NO_COLOR": "", **environment}),
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    os.close(ours)
    text = written.decode()
    assert process.wait() == 0, text
    return text


def variables(environment: dict[str, str]) -> dict[str, str]:
    return {k: v for k, v in {**os.environ, **environment}.items() if v}
