"""Where a service's files may lie and who owns them: as root, PostgreSQL needs another user who can reach its folder."""

import hashlib
import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

# Users that every Unix has, may log in nowhere, and that PostgreSQL accepts (it refuses root, and a uid without a name).
UNPRIVILEGED = ("nobody", "daemon")
ELSEWHERE = Path("/var/tmp")  # noqa: S108 - our folder in it is checked to be ours


class NoGround(Exception):
    """No folder or user is fit to run a service; the message says what to do."""


@dataclass(frozen=True)
class Owner:
    """Who runs a service; None is whoever we are."""

    uid: int | None = None
    gid: int | None = None

    def give(self, path: Path) -> None:
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def can_reach(self, path: Path) -> bool:
        """Whether every folder above `path` lets the owner through; none of them is ours to change."""
        if self.uid is None:
            return True
        return all(self._passes(parent.stat()) for parent in path.resolve().parents if parent.exists())

    def _passes(self, folder: os.stat_result) -> bool:
        if folder.st_uid == self.uid:
            return bool(folder.st_mode & stat.S_IXUSR)
        if folder.st_gid == self.gid:
            return bool(folder.st_mode & stat.S_IXGRP)
        return bool(folder.st_mode & stat.S_IXOTH)


def unprivileged() -> Owner:
    """Whoever we are, or a nameless-as-possible user when we are root."""
    if os.geteuid() != 0:
        return Owner()
    for name in UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Owner(entry.pw_uid, entry.pw_gid)
    raise NoGround("PostgreSQL refuses to run as root, and there is no user 'nobody' to run it as; run as a plain user")


def reachable(folder: Path, owner: Owner) -> Path:
    """`folder`, or a folder of ours under /var/tmp when the owner can't reach it (a home with mode 0700, as root)."""
    if owner.can_reach(folder):
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        return folder
    mark = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
    other = ELSEWHERE / f"faregate-{mark}"
    other.mkdir(mode=0o711, exist_ok=True)
    found = other.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise NoGround(
            f"{other} belongs to somebody else; remove it, or set FAREGATE_HOME to a folder that all users can pass through"
        )
    return other


def reachable_copy(tree: Path, owner: Owner, ground: Path) -> Path:
    """`tree` itself, or a copy beside the data when the owner can't reach it (a virtual environment under /root)."""
    if owner.can_reach(tree / "x"):
        return tree
    # Another release of the wheel is another copy.
    copy = ground / f"programs-{int(tree.stat().st_mtime)}" / tree.name
    if not copy.exists():
        copy.parent.mkdir(mode=0o755, exist_ok=True)
        unfinished = copy.with_name(f"{tree.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(tree, unfinished, symlinks=True)
        unfinished.rename(copy)
    return copy
