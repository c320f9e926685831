#!/usr/bin/python3
"""Runs a command and prints its CPU time in seconds and its peak memory in kB: peak.py COMMAND..."""
import resource
import subprocess
import sys

subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
