"""An epoch of GAT on Cora: python -m benchmarks.gat_cora"""

from benchmarks.epochs import EPOCHS, epochs

NOTES = f"""Training GAT on Cora, 8 heads of 8, the mean over {EPOCHS} epochs: forward, backward,
update, dropout on, nothing evaluated. Ours is `train.py` itself, writing its record every fifty
epochs; the third dropout, which the peers lack, is left out. Each of our heads drops the input by
itself, theirs share one draw."""

if __name__ == "__main__":
    epochs("gat", NOTES, "model.value_dropout=0.0")
