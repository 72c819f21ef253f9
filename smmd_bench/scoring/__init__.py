"""Scoring: decoding sessions, metrics, digit probes, statistics."""
