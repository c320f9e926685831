"""The frames of `dyntrace top`."""
