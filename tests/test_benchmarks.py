"""How costs become ratios and a page; that they are measured rightly, only benchmarks can show."""

import json

from benchmarks.compare import ROUNDS, Cost, compare


def side(values, memory, seen):
    """A process that takes these values, one after the other."""
    values = iter(values)

    def run(cache):
        seen.append((memory, cache.name))
        return Cost(next(values), memory, {"of": str(memory)})

    return run


def test_ratios_are_taken_round_by_round(tmp_path, capsys):
    """Ours slows down where the peer does: the ratio of medians would be another."""
    seen = []
    sides = {
        "ours": side([9, 1, 2, 3, 4, 10], 50, seen),  # the first fills the cache
        "peer": side([10, 10, 10, 50, 20], 200, seen),
    }
    compare("work", "ms", "Words.", sides, home=tmp_path)
    line = json.loads(capsys.readouterr().out)
    assert line["ours"] == {"median": 3, "min": 1, "max": 10}
    assert line["peers"]["peer"] == {"median": 10, "min": 10, "max": 50}
    assert line["ratio"]["peer"] == {"median": 0.2, "min": 0.08, "max": 0.5}
    assert line["memory_ratio"]["peer"]["median"] == 0.25
    assert seen == [(50, "warm")] + ROUNDS * [(50, "warm"), (200, "warm")]
    page = (tmp_path / "README.md").read_text("utf-8")
    assert "| peer | 10 (10 to 50) | 0.2 (0.08 to 0.5) | 200 (200 to 200) | 0.25 (" in page


def test_a_workload_measured_again_replaces_its_line(tmp_path):
    for value, cold in ((1, False), (2, True)):
        seen = []
        sides = {"ours": side([value] * 6, 1, seen), "peer": side([4] * 5, 1, [])}
        compare("work", "s", "Words.", sides, cold=cold, home=tmp_path)
    assert {name for _, name in seen} == {"warm", *map(str, range(ROUNDS))}  # cold: each its own
    [line] = (tmp_path / "measured.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["ratio"]["peer"]["median"] == 0.5
