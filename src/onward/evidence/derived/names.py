"""Programs that print names: `ls`, `find`. See `contents` for what is taken for one."""

from __future__ import annotations

from onward.evidence.derived.pipelines import Command
from onward.evidence.derived.prints import Names, Print


def ls(command: Command) -> Print | None:
    long = hidden = marked = False
    words = []
    for word in command.words[1:]:
        if word.text.startswith("-") and word.plain:
            if word.text in ("--color=never", "--color=auto"):
                continue
            letters = word.text[1:]
            if set(letters) - set("laAFp1htrSGgo"):
                return None
            long = long or bool(set(letters) & set("lgo"))
            hidden = hidden or bool(set(letters) & set("aA"))
            marked = marked or "F" in letters
        else:
            words.append(word)
    if len(words) > 1:
        return None
    if not words:
        return Names(".", long=long, hidden=hidden, marked=marked)
    word = words[0]
    if word.plain:
        return Names(word.text, long=long, hidden=hidden, marked=marked)
    folder, slash, last = word.text.rpartition("/")
    if long or any(mark in folder for mark in "*?[{$`~") or any(mark in last for mark in "{$`~") or not last:
        return None
    return Names(folder + slash or ".", pattern=last, prefixed=bool(folder + slash), marked=marked)


_FIND_VALUED = frozenset(
    {"-maxdepth", "-mindepth", "-type", "-name", "-iname", "-path", "-ipath", "-mtime", "-newer", "-size"}
)
_FIND_BARE = frozenset({"-o", "-or", "-a", "-and", "-not", "!", "(", ")", "-print", "-prune", "-L", "-follow", "-xdev"})


def find(command: Command) -> Print | None:
    rest = command.arguments
    if any(not word.plain for word in command.words):
        return None
    path = rest.pop(0) if rest and not rest[0].startswith(("-", "(", "!")) else "."
    said: list[tuple[str, str]] = []
    while rest:
        word = rest.pop(0)
        if word in _FIND_VALUED and rest:
            said.append((word, rest.pop(0)))
        elif word in _FIND_BARE:
            said.append((word, ""))
        else:
            return None
    names = [value for word, value in said if word == "-name"]
    simple = len(names) <= 1 and all(
        word in ("-name", "-print") or (word, value) == ("-type", "f") for word, value in said
    )
    kept = simple and len(names) == 1 and ("-type", "f") in said
    return Names(path, pattern=names[0] if kept else None, prefixed=True, deep=True, hidden=True, complete=kept)
