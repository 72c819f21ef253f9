"""What `smmd-bench show` shows: the cells, the example, and its digit distributions."""
