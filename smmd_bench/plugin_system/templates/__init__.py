"""What `smmd-bench new` writes: plugins that work as they are, each with its test."""
