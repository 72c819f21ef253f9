"""First-party engines."""
