"""Fills a folder that root's command gives to this user: hostile_folder.py PATTERN ACT

It waits until this user owns a folder that matches the pattern, does ACT, prints `done`, and ends with standard input.

    links   circular links, pipes in place of an index, a stream and a description of events, a large sparse index
    deep    two thousand nested folders
    many    more than a hundred thousand files
    packed  entries that a snapshot must not have: a link to the outside, a hidden name, a file of 9 GB
"""
import glob
import os
import sys
import time


def links(folder):
    for name in "abcdefghijklmnop":
        os.symlink(".", os.path.join(folder, name))
    for path in ("ust/uid/index/x.idx", "ust/uid/x", "other/metadata"):
        os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
        os.mkfifo(os.path.join(folder, path))
    os.close(os.open(os.path.join(folder, "sparse.idx"), os.O_CREAT | os.O_WRONLY))
    os.truncate(os.path.join(folder, "sparse.idx"), 250 << 20)


def deep(folder):
    place = os.open(folder, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner


def many(folder):
    place = os.path.join(folder, "many")
    os.mkdir(place)
    for number in range(101000):
        os.close(os.open(os.path.join(place, str(number)), os.O_CREAT | os.O_WRONLY))


def packed(folder):
    os.symlink("/etc", os.path.join(folder, "link"))
    for name, size in ((".hidden", 1), ("large", 9 << 30)):
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_WRONLY))
        os.truncate(os.path.join(folder, name), size)


def found(pattern):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for path in glob.glob(pattern):
            if os.stat(path).st_uid == os.geteuid():
                return path
        time.sleep(0.001)
    sys.exit(f"no folder {pattern}")


{"links": links, "deep": deep, "many": many, "packed": packed}[sys.argv[2]](found(sys.argv[1]))
print("done", flush=True)
sys.stdin.read()
