"""Claims: runs trained where they are missing, answers made from numbers, whatever they are."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from test_table import folder, rows

from claims import attention_on_citations, claim, contrast
from claims.claim import Claim, Findings, Population
from results.compare import Difference
from results.files import read_json

CLAIM = attention_on_citations.CLAIM


def find(lines):
    found = contrast.contrasts(lines, [("GCN", "MLP")])
    answer = f"{contrast.yes_or_no(found)}: {contrast.tally(found)}, {contrast.amount(found[0])}"
    return Findings(
        answer, contrast.rows(lines, found), contrast.effects({"Cora": lines}, {"": found})
    )


SMALL = Claim(
    name="small",
    question="Does a graph help?",
    method="Few steps.",
    populations={
        system: Population(f"configs/{system.lower()}_cora.py", {"seeds": 2, "steps": 20})
        for system in ("GCN", "MLP")
    },
    find=find,
)


def contents(path):
    """Each file's bytes, and when it was written."""
    files = [file for file in path.rglob("*") if file.is_file() and file.name != ".lock"]
    return {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


@pytest.mark.slow
def test_from_nothing_to_a_page(tmp_path, capfd):
    """A missing run is trained, a finished one is left as it is."""
    assert claim.main(SMALL, ["--dry_run"], tmp_path) == 0
    assert not list(tmp_path.iterdir())
    err = capfd.readouterr().err.splitlines()
    command = "train.py --config=configs/gcn_cora.py --config.seeds=2 --config.steps=20"
    assert err[0] == f"1/2 GCN: absent: {command}" and len(err) == 2

    first = {"GCN": SMALL.populations["GCN"]}
    runs = tmp_path / "runs/small"
    assert claim.train(SMALL._replace(populations=first), {}, runs, dry=False)["GCN"]["n"] == 2
    [gcn] = runs.glob("gcn_cora/*")
    before = contents(gcn)
    assert claim.main(SMALL, [], tmp_path) == 0
    out, err = capfd.readouterr()
    assert "1/2 GCN: finished:" in err and "2/2 MLP: absent:" in err
    assert contents(gcn) == before
    [mlp] = runs.glob("mlp_cora/*")
    found = [read_json(path / "summary.json")["splits"]["test"]["accuracy"] for path in (gcn, mlp)]
    means = [np.mean(one["values"]) for one in found]
    page = (tmp_path / "README.md").read_text()
    one, other = rows(page)
    assert one["test"].startswith(f"{100 * means[0]:.1f} ±") and one["n"] == other["n"] == "2"
    assert one["difference"].startswith(f"{100 * (means[0] - means[1]):+.2f} [")
    assert "\n## Does a graph help?\n\nNot shown: " in page and "`python -m claims.small`" in page
    assert out.strip().endswith("</details>") and page.endswith("</details>\n")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Makes the claim's children write run folders by hand: a function of the accuracies."""

    def make(accuracy):
        def child(command):
            said = dict(word[2:].split("=", 1) for word in command if "=" in word)
            path, stem = Path(said["workdir"]), Path(said["config"]).stem
            system, data = stem.split("_")
            if path.exists():  # it is finished
                return 0
            random = "config.task.split" in said
            rng = np.random.default_rng(len(stem) + random)
            values = accuracy(system, data, random) + rng.normal(0, 0.005, 20)
            of = {"experiment": stem, "data": {"dataset": data, "checksum": data}}
            of["data"]["split"] = "random (20)" if random else "public"
            ids = {"seed": [0] * 20, "split_seed": range(20)} if random else {}
            ids = {name: np.array(numbers) for name, numbers in ids.items()}
            model = {"name": system.upper()}
            failed = [3] if stem == "gat_cora" and random else []
            folder(path, values, ids=ids, of=of, model=model, failed=failed)
            return 0

        monkeypatch.setattr(claim, "child", child)
        return lambda *words: claim.main(CLAIM, words, tmp_path)

    return make


def test_attention_on_citations(runs, tmp_path, capsys):
    """Its twelve populations; its answer follows the numbers, against attention too."""
    ahead = {"gat": 0.80, "gcn": 0.78, "mlp": 0.55}
    assert runs(lambda system, data, random: ahead[system])() == 0
    out = capsys.readouterr().out
    assert "\n\nYes: GAT, as published, is better in 4 of 4 comparisons with GCN. On Cora," in out
    assert "GCN is better in 4 of 4 comparisons with MLP." in out
    found = rows(out)
    assert len(found) == 12 and {row["n"] for row in found} == {"20", "19"}
    first = found[[row["runs"] for row in found].index("GAT, Cora, random splits")]
    assert first["compared"].startswith("paired by split_seed, n = 19 (without split_seed 3):")
    assert "Failed, and in no mean: gat_cora: seed 0 split_seed 3." in out
    picture = tmp_path / "figures/attention_on_citations.png"
    with Image.open(picture) as image:
        assert picture.stat().st_size < 80_000 and image.width > 2000
    record = json.loads((tmp_path / "recorded.jsonl").read_text())
    assert len(record["lines"]) == 12 and record["lines"]["GAT, Cora, public split"]["values"]

    before = contents(tmp_path)
    runs(None)
    assert claim.main(CLAIM, ["--redraw"], tmp_path) == 0  # no child is asked
    assert {k: v[1] for k, v in contents(tmp_path).items()} == {k: v[1] for k, v in before.items()}


@pytest.mark.parametrize(
    "behind, answer",
    [
        (lambda data, random: -0.02, "No: GAT, as published, is worse in 4 of 4 comparisons"),
        (lambda data, random: 0, "Not shown: GAT, as published, is not shown to differ in 4 of 4"),
        (
            lambda data, random: 0.02 * (data == "cora") - 0.02 * random,
            "In part: GAT, as published, is better in 1, worse in 1 and not shown to differ in 2",
        ),
    ],
)
def test_a_failure_is_published_as_plainly(runs, capsys, behind, answer):
    level = {"gat": 0.78, "gcn": 0.78, "mlp": 0.55}
    ours = lambda system, *place: level[system] + (system == "gat") * behind(*place)
    assert runs(ours)() == 0
    assert f"\n\n{answer}" in capsys.readouterr().out


def test_a_trial_is_not_recorded(runs, tmp_path):
    assert runs(lambda *place: 0.5)("--config.steps=20") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    page = (tmp_path / "runs/attention_on_citations/trial/README.md").read_text()
    assert f"\n## {CLAIM.question} A trial: steps=20\n" in page
    assert (tmp_path / "runs/attention_on_citations/mlp_cora/seeds=20,steps=20").exists()


def test_what_goes_wrong_is_one_line(runs, tmp_path, monkeypatch, capsys):
    run = runs(lambda *place: 0.5)
    monkeypatch.setattr(claim, "child", lambda command: 143)
    assert run() == 143
    why = "ended with exit code 143: the same command goes on from here"
    assert capsys.readouterr().err.splitlines()[-1] == f"error: GAT, Cora, public split {why}"
    assert run("--redraw") == 2
    assert capsys.readouterr().err.startswith("error: attention_on_citations is not recorded yet")
    with pytest.raises(SystemExit) as e:
        run("--seeds=2")
    assert e.value.code == 2 and not list(tmp_path.iterdir())


def test_runs_of_other_code_are_told_of(runs, tmp_path, capsys):
    run = runs(lambda *place: 0.5)
    assert run() == 0 and "code changed" not in "".join(capsys.readouterr())
    file = next(tmp_path.glob("runs/*/gcn_cora/*/config.json"))
    file.write_text(file.read_text().replace("c0de", "0ld"))
    assert run() == 0
    out, err = capsys.readouterr()
    assert err.splitlines()[-1].startswith("code changed between these runs, and the page")
    assert "The code changed between these runs: 2 versions." in out


def test_an_unfinished_run_goes_on(runs, tmp_path, monkeypatch):
    run, commands = runs(lambda *place: 0.5), []
    assert run() == 0
    next(tmp_path.glob("runs/*/gcn_cora/*/summary.json")).unlink()
    monkeypatch.setattr(claim, "child", lambda command: commands.append(command) or 130)
    assert run() == 130
    assert [command[-1] for command in commands] == ["--resume"] * len(commands)


def test_an_interrupt_is_left_to_the_child():
    """It is asked to end, and saves; its exit code is what counts."""
    code = "import os, signal, sys, time; signal.signal(signal.SIGINT, lambda *_: sys.exit(130));"
    code += "os.kill(os.getppid(), signal.SIGINT); os.kill(os.getpid(), signal.SIGINT)"
    assert claim.child([sys.executable, "-c", code]) == 130


@pytest.mark.parametrize(
    "value, p, metric, verdict",
    [
        (0.1, 0.049, "accuracy", "better"),
        (-0.1, 0.049, "accuracy", "worse"),
        (-0.1, 0.049, "loss", "better"),
        (0.1, 0.049, "perplexity", "worse"),
        (0.1, 0.05, "accuracy", "not shown to differ"),
    ],
)
def test_verdicts(value, p, metric, verdict):
    found = Difference(value, value - 0.2, value + 0.2, p, 0.0, "")
    assert contrast.Contrast("a", "b", metric, found, p).verdict == verdict


def test_p_values_are_corrected_for_all_contrasts_of_a_claim():
    """Two of two runs each, apart: p is a third each, of two contrasts two thirds."""
    line = lambda *values: (
        {"metric": "accuracy"} | {"values": [{"seed": i, "value": v} for i, v in enumerate(values)]}
    )
    lines = {"a": line(0.8, 0.9), "b": line(0.6, 0.7), "c": line(0.4, 0.5), "d": line(0.1)}
    found = contrast.contrasts(lines, [("a", "b"), ("b", "c"), ("a", "d")])
    assert [one.p for one in found[:2]] == pytest.approx([2 / 3] * 2) and found[2].found is None
    words = "not shown to differ in 2 and not compared, for lack of runs, in 1 of 3 comparisons"
    assert contrast.tally(found) == words


def test_the_page_that_ships_is_generated():
    records = claim.recorded(claim.HOME)
    page = claim.page([records[name] for name in sorted(records)])
    assert (claim.HOME / "README.md").read_text("utf-8") == page
    for name in records:
        assert (claim.HOME / "figures" / f"{name}.png").stat().st_size < 80_000


def test_populations_are_twelve_of_configs_that_are_there():
    assert len(CLAIM.populations) == 12
    for config, _ in CLAIM.populations.values():
        assert (claim.ROOT / config).exists()
