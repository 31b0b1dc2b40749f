"""Comparisons, against distributions enumerated by hand and values from printed tables."""

import csv
import io
import json

import numpy as np
import pytest
from test_table import DATA, folder, rows

from results import compare, table

RANDOM = {"data": DATA | {"split": "random (3)"}}


def line(*values, **ids):
    """A line of a table; values: of its runs; ids: their numbers, by default seeds."""
    ids = ids or {"seed": range(len(values))}
    runs = [dict(zip(ids, run, strict=True)) for run in zip(*ids.values(), strict=True)]
    return {"values": [run | {"value": v} for run, v in zip(runs, values, strict=True)]}


def pairs(*differences):
    """Two lines, the first ahead by these on so many random splits."""
    splits = {"split_seed": range(len(differences)), "seed": [0] * len(differences)}
    base = [0.5 + 0.01 * i for i in range(len(differences))]
    ours = [one + other for one, other in zip(base, differences, strict=True)]
    return line(*ours, **splits), line(*base, **splits)


@pytest.mark.parametrize(
    "differences, p",
    [
        ((0.01, 0.02, 0.03), 2 / 8),  # sums ±6 ±4 ±2 0 0: one of eight is 6, and one is -6
        ((0.02, 0.03, -0.01), 4 / 8),  # of the same sums, two are 4 or more
        ((0.01,) * 5, 2 / 32),
        ((0.02, -0.02), 1),
        ((0.0, 0.0), 1),
    ],
)
def test_sign_flips_by_hand(differences, p):
    found = compare.difference(*pairs(*differences))
    assert found.p == pytest.approx(p)
    assert found.value == pytest.approx(np.mean(differences))
    words = f"paired by split_seed, n = {len(differences)}: sign-flip permutation test"
    assert found.how == words


def test_permutations_by_hand():
    """Of the six ways to share four values out, one has these two on top and one the others."""
    found = compare.difference(line(0.84, 0.86), line(0.80, 0.82))
    assert found.value == pytest.approx(0.04) and found.p == pytest.approx(2 / 6)
    assert found.how == "unpaired, n = 2 and 2: permutation test"
    assert compare.difference(line(0.84, 0.86), line(0.84, 0.86)).p == 1


@pytest.mark.parametrize(
    "differences, p",
    [
        (range(1, 6), 2 / 32),
        ((*range(1, 8), -8, 9, 10), 0.0488),  # a printed table: T = 8 of n = 10, two-sided
        ((*range(1, 10), -10), 2 * 43 / 1024),  # 43 sets of ranks have a sum of 10 or less
        ((0, 0, 0), 1),
        ((0.02, 0.02, 0.02), 2 / 8),  # ties, though 0.52 - 0.5 and 0.53 - 0.51 have other digits
    ],
)
def test_signed_ranks_from_a_table(differences, p):
    found = compare.difference(*pairs(*differences), test="wilcoxon")
    assert found.p == pytest.approx(p, abs=5e-5)
    assert found.how.endswith(f"n = {len(differences)}: Wilcoxon signed-rank test")


@pytest.mark.parametrize(
    "ours, theirs, p",
    [
        ((4, 5, 6), (1, 2, 3), 2 / 20),  # U = 0
        ((3, 5, 6, 7), (1, 2, 4, 8), 0.4857),  # U = 5 of n = 4 and 4, a printed table
    ],
)
def test_rank_sums_from_a_table(ours, theirs, p):
    found = compare.difference(line(*ours), line(*theirs), test="wilcoxon")
    assert found.p == pytest.approx(p, abs=5e-5)
    assert found.how == f"unpaired, n = {len(ours)} and {len(theirs)}: Mann-Whitney U test"


@pytest.mark.parametrize(
    "samples, low, high",
    [
        ([(0.0, 0.02)], 0.0, 0.02),  # a quarter of all resamples is at either end
        ([(0.01, 0.02, 0.03)], 0.01, 0.03),  # one of 27, more than a fortieth
        ([(0.0, 1.0), (0.0, 1.0)], -1.0, 1.0),  # one of 16
        ([(0.5, 0.5, 0.5)], 0.5, 0.5),
        ([(0.0,) * 39 + (1.0,)], 0.0, 3 / 40),  # of 40: binomial, P(k > 3) is 0.017, P(k > 2) 0.08
    ],
)
def test_intervals_by_hand(samples, low, high):
    found = compare.interval(tuple(map(np.array, samples)))
    assert found == pytest.approx((low, high))


def test_interval_of_many_runs_is_that_of_a_normal_mean():
    x, y = np.random.default_rng(1).normal(size=(2, 400))
    low, high = compare.interval((x, y))
    error = np.sqrt(x.var() / 400 + y.var() / 400)
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.03)
    assert (high + low) / 2 == pytest.approx(x.mean() - y.mean(), abs=0.05 * error)


def test_pairs_are_told_by_their_split_and_not_by_their_place():
    """What splits add, ten times what the systems differ by, is in both."""
    splits = np.array([3, 1, 0, 2])
    ours = line(*(0.1 * splits + 0.01), split_seed=splits, seed=[5] * 4)
    theirs = line(*(0.1 * splits[::-1]), split_seed=splits[::-1], seed=[9] * 4)
    found = compare.difference(ours, theirs)
    assert (found.low, found.value, found.high) == pytest.approx((0.01, 0.01, 0.01))


def test_seeds_of_a_split_are_one_measurement():
    ids = {"split_seed": [0, 0, 1, 1], "seed": [0, 1, 0, 1]}
    found = compare.difference(line(0.80, 0.82, 0.84, 0.86, **ids), line(*[0.7] * 4, **ids))
    assert found.value == pytest.approx(0.13) and "n = 2:" in found.how
    assert (found.low, found.high) == pytest.approx((0.11, 0.15))


def test_failed_runs_drop_out_with_their_pair():
    ids = {"split_seed": range(4), "seed": [0] * 4}
    ours, theirs = line(0.8, None, 0.82, 0.84, **ids), line(0.7, 0.1, 0.72, None, **ids)
    found = compare.difference(ours, theirs)
    assert found.value == pytest.approx(0.1)
    assert found.how.startswith("paired by split_seed, n = 2 (without split_seed 1, split_seed 3):")
    found = compare.difference(line(0.8, None, 0.82), line(0.7, 0.72, 0.74))
    assert found.how.startswith("unpaired, n = 2 and 3")
    assert compare.difference(line(0.8, None), line(0.7, 0.72)) is None
    assert compare.difference(*pairs(0.1)) is None


def test_other_splits_are_no_pairs():
    ours, theirs = (line(0.8, 0.9, split_seed=s, seed=[0, 0]) for s in ([0, 1], [2, 3]))
    assert compare.difference(ours, theirs).how.startswith("unpaired, n = 2 and 2")


def test_holm_by_hand():
    assert compare.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert compare.holm([0.5, 0.6]) == [1, 1]
    assert compare.holm([0.2]) == [0.2] and compare.holm([]) == []


# ---- In a table


@pytest.fixture
def show(tmp_path, capsys):
    (tmp_path / "home").mkdir()
    return lambda *words: (table.main([*map(str, words)], tmp_path / "home"), *capsys.readouterr())


@pytest.fixture
def runs(tmp_path):
    """Three systems on three splits, one of whose runs failed."""
    path = tmp_path / "runs"
    for name, values in {
        "GAT": [0.81, 0.83, 0.85],
        "GCN": [0.80, 0.81, 0.82],
        "MLP": [0.60, 0.10, 0.62],
    }.items():
        failed = [1] if name == "MLP" else []
        of = RANDOM | {"experiment": f"{name.lower()}_cora"}
        ids = {"seed": [0, 0, 0], "split_seed": [0, 1, 2]}
        folder(path / name, values, ids=ids, failed=failed, of=of, model={"name": name})
    return path


def test_a_baseline(runs, show):
    code, out, err = show(runs, "--baseline=GCN")
    gat, gcn, mlp = rows(out)
    assert (code, err) == (0, "")
    assert gat["difference to GCN"] == "+2.00 [+1.00, +3.00]" and gat["p (Holm)"] == "0.500"
    assert gcn["difference to GCN"] == "baseline" and gcn["p (Holm)"] == ""
    assert mlp["difference to GCN"] == "−20.00 [−20.00, −20.00]" and mlp["p (Holm)"] == "0.500"
    assert out.splitlines()[-2] == (
        "Differences are of means in points, in brackets the 95 % interval by bootstrap (10,000 "
        "resamples); gat_cora: paired by split_seed, n = 3: sign-flip permutation test; mlp_cora: "
        "paired by split_seed, n = 2 (without split_seed 1): sign-flip permutation test. "
        "p is corrected by Holm for 2 comparisons. Of so few runs p cannot be below 1.000, "
        "whatever they show."
    )
    assert show(runs, "--baseline=gcn_cora")[1] == out.replace("to GCN", "to gcn_cora")


def test_programs_get_plain_numbers_and_papers_get_signs(runs, show):
    found = csv.DictReader(io.StringIO(show(runs, "--baseline=GCN", "--format=csv")[1]))
    gat, gcn, mlp = found
    assert float(gat["difference"]) == pytest.approx(0.02) and float(gat["p"]) == 0.25
    assert float(gat["p_holm"]) == 0.5 and gat["baseline"] == "GCN"
    assert [gcn[name] for name in ("difference", "low", "p", "compared")] == [
        "",
        "",
        "",
        "baseline",
    ]
    assert float(mlp["low"]) == pytest.approx(-0.2) and "without split_seed 1" in mlp["compared"]
    text = show(runs, "--baseline=gcn_cora", "--format=latex", "--test=wilcoxon")[1]
    assert r"& difference to gcn\_cora & p (Holm) &" in text
    assert r"& $-$20.00 [$-$20.00, $-$20.00] &" in text
    assert text.splitlines()[1].startswith("% Differences") and "Wilcoxon" in text.splitlines()[1]
    assert r"GAT & \textbf{83.0 $\pm$ 2.0 \%} & 3" in text


def test_the_order_of_folders_changes_nothing(tmp_path, show):
    values = np.random.default_rng(0).normal(0.8, 0.01, (2, 6))
    for name, model in (("a", "GAT"), ("z", "GCN")):
        for i, value in enumerate(values[int(model == "GCN")]):
            date = {"a": "2026-01-01", "z": "2026-02-01"}[name]
            of = {"experiment": model, "date": f"{date}T0{i if name == 'a' else 9 - i}"}
            folder(tmp_path / "one" / f"{model}{i}", [value], seed=i, of=of)
            of = of | {"date": f"{date}T0{(5 * i) % 7}"}
            folder(tmp_path / "two" / f"{model}{i}", [value], seed=i, of=of)
    one, two = (
        show(tmp_path / name, "--baseline=GCN", "--format=csv")[1] for name in ("one", "two")
    )
    assert [row.split(",")[14:] for row in one.splitlines()] == [
        row.split(",")[14:] for row in two.splitlines()
    ]


@pytest.mark.parametrize(
    "name, why",
    [
        ("GNC", "--baseline=GNC: there is no such line; did you mean 'GCN'?"),
        ("", "--baseline=: there is no such line; there are GAT, GCN, MLP, gat_cora, "),
    ],
)
def test_a_wrong_name_is_one_line(runs, show, name, why):
    code, out, err = show(runs, f"--baseline={name}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: {why}")


def test_a_name_of_several_lines_wants_their_settings(tmp_path, show):
    folder(tmp_path / "a", [0.80, 0.82])
    folder(tmp_path / "b", [0.70, 0.74], overrides={"steps": 100})
    code, _, err = show(tmp_path, "--baseline=GCN")
    assert (code, err) == (
        2,
        "error: --baseline=GCN: 2 lines of a table are that, say which: 'gcn_cora', "
        "'gcn_cora steps=100'\n",
    )
    first, second = rows(show(tmp_path, "--baseline=gcn_cora")[1])
    assert second["difference to gcn_cora"].startswith("−9.00 [") and "p" in second
    first, second = rows(show(tmp_path, "--baseline=gcn_cora steps=100")[1])
    assert first["difference to gcn_cora steps=100"].startswith("+9.00 [")


def test_a_table_without_the_baseline_stays_as_it_is(tmp_path, runs, show):
    folder(runs / "other", [0.70, 0.74], of={"experiment": "other"}, model={"name": "Other"})
    out = show(runs, "--baseline=GCN")[1]
    assert show(runs / "other")[1] in out


def test_one_run_has_no_interval(tmp_path, show):
    folder(tmp_path / "a", [0.80])
    folder(tmp_path / "b", [0.70, 0.74], overrides={"steps": 100})
    out = show(tmp_path, "--baseline=gcn_cora")[1]
    assert rows(out)[1]["difference to gcn_cora"] == "" and "too few runs." in out


def test_lines_recorded_without_values_are_not_compared(tmp_path, runs, show):
    show("--record", runs)
    file = tmp_path / "home/published.jsonl"
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    assert show("--baseline=GCN")[1] == show(runs, "--baseline=GCN")[1]
    lines[0].pop("values")
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = show("--baseline=GCN")[1]
    assert "; gat_cora: recorded without its runs' values; mlp_cora: paired" in out
    for line in lines:
        line.pop("values", None)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, err = show("--baseline=GCN")
    why = "these lines were recorded without their runs' values: name run folders"
    assert (code, out, err) == (2, "", f"error: {why}\n")


@pytest.mark.parametrize(
    "metric, bold",
    [("accuracy", ["low"]), ("loss", ["high", "tie"]), ("perplexity", ["high", "tie"])],
)
def test_the_best_is_bold(metric, bold):
    """ "high" and "tie" are 0.5000 both as they are shown."""
    scores = {"high": 0.5, "low": 0.9, "tie": 0.50001, "failed": None}
    about = {"task": "t", "split": "s", "metric": metric, "changed": "", "system": "S", "std": None}
    about |= {"paper": None, "range": None, "tested": "", "parameters": 1, "seconds": 1.0, "n": 1}
    about |= {"date": "", "failed": ""}
    lines = [about | {"experiment": name, "mean": mean} for name, mean in scores.items()]
    found = {row["experiment"]: row["test"] for row in rows(table.tables(lines))}
    assert [name for name in scores if found[name].startswith("**")] == bold
    assert all(found[name].endswith("**") for name in bold)
    assert "**" not in table.tables(lines[:1]) and "**" not in table.tables([lines[0], lines[3]])
