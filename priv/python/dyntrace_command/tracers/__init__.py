"""bpftrace and LTTng."""
