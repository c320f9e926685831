"""The columns of `dyntrace top`, by their map in programs/top.bt: the title. And the keys that sort by them."""

COLUMNS = {"run": "RUN US", "io": "IO US", "sent": "SENT", "received": "RECEIVED", "gc": "GC US", "gcs": "GCS"}
KEYS = {"r": "run", "i": "io", "s": "sent", "m": "received", "g": "gc"}
