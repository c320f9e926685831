#!/usr/bin/python3
"""Runs a command; prints its seconds and its peak memory in kB: peak.py COMMAND..."""
import resource
import subprocess
import sys
import time

began = time.monotonic()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
