"""What a source is now, to be noted as an observation: the fingerprint of a file below a directory."""

from __future__ import annotations

import stat

from onward.evidence.files import LARGEST_TEXT, Missing, Skipped, Tree, hashed, names, read, status_at, word
from onward.evidence.making import of_bytes
from onward.evidence.observation import Absent, Fingerprint, Listing, Subject, Unverifiable, Whole
from onward.evidence.scope import Inside, Locator, Outside, Scope, Unusable


def fingerprint_now(subject: Subject, scope: Scope) -> Fingerprint:
    """What is known of a file or directory now, when all of it is looked at. Of any other source: nothing.

    Args:
        subject: what to look at. What lies outside of the scope's root is not looked at.
    """
    if subject.kind not in ("file", "directory"):
        return Unverifiable("nothing was noted of it that could be compared")
    match Locator(scope).locate(subject.address, subject.cwd):
        case Unusable(reason):
            return Unverifiable(reason)
        case Outside(path):
            return Unverifiable(f"{path} is outside of the session's root")
        case Inside(parts):
            try:
                return _look(Tree(scope.root), parts)
            except Missing:
                return Absent()
            except Skipped as why:
                return Unverifiable(str(why))


def _look(tree: Tree, parts: tuple[str, ...]) -> Fingerprint:
    real = tree.resolve(parts)
    if real:
        with tree.directory(real[:-1]) as fd:
            found = status_at(fd, real[-1])
            if stat.S_ISREG(found.st_mode):
                if found.st_size <= LARGEST_TEXT:
                    data, state, _ = read(fd, real[-1])
                    return of_bytes(data, mtime=state.mtime)
                digests, state, _ = hashed(fd, real[-1])
                return Whole(digests.sha256.hex(), digests.blob.hex(), state.size, mtime=state.mtime)
            if not stat.S_ISDIR(found.st_mode):
                raise Skipped(f"it is {word(found.st_mode)}")
    with tree.directory(real) as fd:
        inner = sorted(name + "/" * is_dir for name, is_dir in names(fd))
        return Listing(tuple(inner), complete=True, hidden=True)
