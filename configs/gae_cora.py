"""GAE on Cora, Kipf & Welling 2016 (arXiv:1611.07308), table 1: AUC 91.0, average precision 92.0.

python train.py --config=configs/gae_cora.py

As in the authors' code: no dropout, no weight decay, words not scaled; nodes are links to
themselves among the targets; the last weights are tested. What differs: theirs are ten starts on
one split, ours is one start on each of ten; and no pair without a link is drawn that is linked in
another part, or drawn for another, which their code does not see to.
"""

from configs import base


def get_config():
    return base(
        task=dict(
            name="Links",
            dataset="cora",
            split="random",
            splits=10,
            validation=0.05,
            test=0.10,
            negatives=1,
            objective="all pairs",
            features=True,
            normalize=False,
        ),
        model=dict(name="GAE", encoder=dict(name="GCN", out=16, width=32, depth=2, dropout=0.0)),
        optimizer=dict(name="adam", learning_rate=1e-2),
        select=dict(metrics=("loss",), keep="last"),
        expected=dict(
            metric="auc", value=0.910, low=0.900, high=0.920, source="Kipf & Welling 2016, table 1"
        ),
        steps=200,
        evaluate=10,
        every=10,
        seeds=1,
    )
