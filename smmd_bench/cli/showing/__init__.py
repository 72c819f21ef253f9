"""`smmd-bench show`: one example of a run, with what every loss made of it."""
