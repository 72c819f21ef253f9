"""A release names what was unreleased, once."""

from datetime import date

import pytest

from scripts.release_changelog import release

DAY = date(2026, 12, 24)
BEFORE = "# Changelog\n\n## Unreleased\n\n**New**: a thing.\n\n## 0.0.9 (2026-01-01)\n\nOld.\n"


def test_unreleased_becomes_a_version_with_its_date_and_is_empty_again():
    assert release(BEFORE, "0.1.0", DAY) == (
        "# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-12-24)\n\n**New**: a thing.\n\n"
        "## 0.0.9 (2026-01-01)\n\nOld.\n"
    )


def test_a_version_is_released_once_and_not_without_a_line():
    with pytest.raises(SystemExit, match=r"has a section 0\.0\.9: raise `version`"):
        release(BEFORE, "0.0.9", DAY)
    released = release(BEFORE, "0.1.0", DAY)
    with pytest.raises(SystemExit, match="nothing under Unreleased: write a line"):
        release(released, "0.2.0", DAY)
