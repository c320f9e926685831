"""The columns of `dyntrace top`: their titles, and the keys of the keyboard that sort by them."""

# By samples: the fields of sampled.Process.
SAMPLED = {"reductions": "REDS", "queue": "QUEUE", "memory": "MEMORY", "growth": "GROWTH"}
SAMPLED_KEYS = {"r": "reductions", "l": "queue", "m": "memory", "g": "growth"}

# By events: the maps of programs/counted.bt.
COUNTED = {"run": "RUN US", "io": "IO US", "sent": "SENT", "received": "RECEIVED", "gc": "GC US", "gcs": "GCS"}
COUNTED_KEYS = {"r": "run", "i": "io", "s": "sent", "m": "received", "g": "gc"}
