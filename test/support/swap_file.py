#!/usr/bin/python3
"""Replaces a file while it is written: swap_file.py file|folder FOLDER. Runs as the user `nobody`, who owns the folder
and its parent. It prints `ready`, waits for a file in the folder, and replaces the file or the folder. The exit status
is 3 if the file was complete before."""
import os
import sys


def main(what: str, folder: str) -> int:
    """Returns the exit status."""
    os.setgid(65534)
    os.setuid(65534)
    print("ready", flush=True)
    names = []
    while not names:
        names = os.listdir(folder)
    replaced = os.path.join(folder, names[0]) if what == "file" else folder
    try:
        os.rename(replaced, replaced + ".taken")
    except FileNotFoundError:
        return 3
    if what == "folder":
        names = os.listdir(folder + ".taken")
        os.mkdir(folder)
        replaced = os.path.join(folder, "picture")
    with open(replaced, "w", encoding="ascii") as file:
        file.write("of another")
    return 0 if names[0].endswith(".part") else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
