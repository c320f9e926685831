"""Profiles by samples."""
