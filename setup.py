"""Maps the top-level folders onto one package: `tasks/` is `smmd_bench.tasks`, and so on.

Everything declarative is in pyproject.toml. The packages are found root by root, so that a new
subpackage can never drop out of the wheel.
"""

from setuptools import find_packages, setup

ROOTS = {
    "smmd_bench": "smmd_bench",
    "smmd_bench.plugins": "plugins",
    "smmd_bench.tasks": "tasks",
    "smmd_bench.reports": "reports",
}

setup(
    package_dir=ROOTS,
    packages=[
        package
        for root, folder in ROOTS.items()
        for package in (root, *(f"{root}.{sub}" for sub in find_packages(folder)))
    ],
)
