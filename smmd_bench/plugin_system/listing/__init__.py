"""What is installed, as `smmd-bench ls` shows it and completion offers it."""
