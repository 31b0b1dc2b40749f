"""A hundred seeds of GCN on Cora, the whole command: python -m benchmarks.seeds_cora"""

from benchmarks.compare import compare, ours, peer

NOTES = """100 seeds of GCN on Cora, 200 epochs each, then the test. Ours is the whole command, from
its start to its end, compiling included: `train.py --config=configs/gcn_cora.py --config.seeds=100`
without validations. The peers train one seed after the other, without validations either; their
time is that of three seeds, times 100/3, without start-up and data."""

if __name__ == "__main__":
    words = [f"--config.{setting}" for setting in ("seeds=100", "evaluate=0")]
    theirs = lambda found: 100 * found["seconds"]
    script = "benchmarks/peer_cora.py", "gcn", "--epochs=200", "--runs=3"
    sides = {
        "ours": ours("train.py", "--config=configs/gcn_cora.py", *words),
        "PyTorch Geometric": peer(theirs, *script),
        "tuned torch": peer(theirs, *script, "--sparse"),
    }
    compare("seeds_cora", "s", NOTES, sides, cold=True)
