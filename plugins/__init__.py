"""First-party losses, engines and executors. Installed as `smmd_bench.plugins`."""

if __name__ != "smmd_bench.plugins":
    raise ImportError(
        "import this package as smmd_bench.plugins, not by the name of its folder"
    )
