"""What a cell leaves on disk; reading a run into pandas."""
