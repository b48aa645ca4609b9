"""The first moments of a container, run as its first process by `container.py`.

`python inside.py FILE` reads what to do as JSON, makes this process look like one that a container
engine has started (its own root, /proc, /dev, host name, loopback, user, no privileges), and then
becomes the command.
"""

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
PR_SET_NO_NEW_PRIVS = 38
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def mount(*arguments):
    """Mount something, with the command of that name."""
    subprocess.run(["mount", *map(str, arguments)], check=True)


def lay_over(image, directory):
    """Return a root directory that reads from the image's and writes to memory."""
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", directory)
    root, written, work = (directory / name for name in ("root", "written", "work"))
    for path in (root, written, work):
        path.mkdir()
    layers = f"lowerdir={image},upperdir={written},workdir={work}"
    overlay = ["mount", "-t", "overlay", "-o", layers, "overlay", root]
    if subprocess.run(overlay, check=False, stderr=subprocess.DEVNULL).returncode:
        # A machine whose own root is an overlay may refuse another one: copy it then.
        subprocess.run(["cp", "-a", f"{image}/.", root], check=True)
        mount("--bind", root, root)
    return root


def prepare_root(root, specification):
    """Write and mount what a container has beside its image."""
    name, read_only = specification["host_name"], specification["read_only"]
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n")
    (root / "etc/hostname").write_text(f"{name}\n")
    if read_only:
        mount("-o", "remount,bind,ro", root)
    mount("-t", "proc", "-o", "nosuid,nodev,noexec", "proc", root / "proc")
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", root / "dev")
    for name in DEVICES:
        (root / "dev" / name).touch()
        mount("--bind", f"/dev/{name}", root / "dev" / name)
    (root / "dev/shm").mkdir()
    mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", root / "dev/shm")
    if read_only:
        mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", root / "tmp")
    for inside, outside in specification["volumes"].items():
        mount("--bind", outside, root / inside.lstrip("/"))


def bring_loopback_up():
    """Set the interface `lo` of this network up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        asked = fcntl.ioctl(control, SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0))
        (flags,) = struct.unpack_from("16xh", asked)
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def become(user_id, group_id):
    """Drop the privileges of root permanently."""
    os.setgroups([])
    os.setgid(group_id)
    os.setuid(user_id)
    if ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError("prctl")


def main(specification):
    """Do all of it."""
    root = lay_over(specification["image"], Path(specification["directory_of_root"]))
    prepare_root(root, specification)
    bring_loopback_up()
    socket.sethostname(specification["host_name"])
    os.chroot(root)
    os.chdir("/")
    become(*specification["user"])
    os.chdir(specification["directory"])
    os.umask(0o022)
    command, environment = specification["command"], specification["environment"]
    os.execvpe(command[0], command, environment)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
