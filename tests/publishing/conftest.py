"""The synthetic run, for the tests of this folder."""

from tests.runs import run_folder

__all__ = ["run_folder"]
