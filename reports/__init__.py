"""First-party reports, one file a table or figure. Installed as `smmd_bench.reports`."""

if __name__ != "smmd_bench.reports":
    raise ImportError("import this package as smmd_bench.reports, not by the name of its folder")
