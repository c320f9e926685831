"""The columns of `dyntrace top`: their titles."""

# By samples: the fields of from_samples.Process.
SAMPLED = {"reductions": "REDS", "queue": "QUEUE", "memory": "MEMORY", "growth": "GROWTH"}

# By events: the maps of programs/event_sums.bt.
COUNTED = {"run": "RUN US", "io": "IO US", "sent": "SENT", "received": "RECEIVED", "gc": "GC US", "gcs": "GCS"}
