"""Recordings, snapshots and flight recorders."""
