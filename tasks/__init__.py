"""First-party tasks: one file a task. Installed as `smmd_bench.tasks`."""

if __name__ != "smmd_bench.tasks":
    raise ImportError(
        "import this package as smmd_bench.tasks, not by the name of its folder"
    )
