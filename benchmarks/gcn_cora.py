"""An epoch of GCN on Cora: python -m benchmarks.gcn_cora"""

from benchmarks.epochs import EPOCHS, epochs

NOTES = f"""Training GCN on Cora, 16 hidden units, the mean over {EPOCHS} epochs: forward, backward,
update, dropout on, nothing evaluated. Ours is `train.py` itself, writing its record every fifty
epochs."""

if __name__ == "__main__":
    epochs("gcn", NOTES)
