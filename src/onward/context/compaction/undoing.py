"""What a surface would be without one compaction: the originals are back, and what came after it stays. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from onward.model.surface import Op, step


def without(steps: Iterable[tuple[int, Op]], skipped: Collection[int]) -> list[int]:
    """Fold a path's surface operations as if some had never been.

    What named a skipped node means what that node stood for. An edit of nothing but skipped nodes is skipped as well.

    Args:
        steps: (seq, resolved operation) of the path's carriers, in order, as `model.surface.fold` takes them.
        skipped: seqs of the replacements that are not to count.
    """
    real: list[int] = []
    out: list[int] = []
    stands: dict[int, list[int]] = {}
    for seq, op in steps:
        if op is None:
            real.append(seq)
            out.append(seq)
            continue
        before = list(real)
        real = step(real, seq, op)
        kept = set(real)
        gone = [node for node in before if node not in kept]
        if seq in skipped or (gone and isinstance(op, tuple) and all(node in stands for node in gone)):
            stands[seq] = gone
        elif isinstance(op, tuple):
            out = _replaced(out, _meant(gone, stands), seq)
        else:
            out = _meant(op, stands)
    return out


def _meant(nodes: Iterable[int], stands: dict[int, list[int]]) -> list[int]:
    """Nodes with what skipped ones stood for in their place, each once."""
    out: dict[int, None] = {}
    stack = [*nodes][::-1]
    while stack:
        node = stack.pop()
        if node in stands:
            stack += reversed(stands[node])
        else:
            out[node] = None
    return list(out)


def _replaced(surface: Sequence[int], gone: Sequence[int], seq: int) -> list[int]:
    going = set(gone)
    places = [at for at, node in enumerate(surface) if node in going]
    at = places[0] if places else len(surface)
    return [*surface[:at], seq, *(node for node in surface[at:] if node not in going)]


def spans(nodes: Iterable[int], carriers: Sequence[int]) -> list[int | tuple[int, int]]:
    """Nodes as seqs and, where they follow one another among the carriers of their path, pairs: the same and shorter.

    Args:
        nodes: in any order; it is kept.
        carriers: the nodes of the path that carry a surface, ascending.
    """
    place = {seq: at for at, seq in enumerate(carriers)}
    runs: list[list[int]] = []
    for node in nodes:
        if runs and place[node] == place[runs[-1][-1]] + 1:
            runs[-1].append(node)
        else:
            runs.append([node])
    return [item for run in runs for item in ([(run[0], run[-1])] if len(run) > 1 else run)]
