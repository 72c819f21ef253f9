"""First-party reports, one file a table or figure. Installed as `smmd_bench.reports`."""

# A second import by another name would be a second module, with other classes of the same name.
if __name__ != "smmd_bench.reports":
    raise ImportError(
        "import this package as smmd_bench.reports, not by the name of its folder"
    )
