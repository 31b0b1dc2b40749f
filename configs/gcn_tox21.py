"""GCN on Tox21, random splits, after MoleculeNet (Wu et al. 2018, arXiv:1703.00564): 0.829 ± 0.006.

python train.py --config=configs/gcn_tox21.py

Their graph convolution is another one, with matrices for each degree; atoms are described much as
there. The mean ROC AUC of twelve assays, each over the molecules it was measured on. Pooling, width
and rate were chosen on the validation molecules of two splits.
"""

from configs import base

EPOCH = 98  # batches that hold every molecule to train on once


def get_config():
    return base(
        task=dict(name="Tox21", split="random", splits=10, bonds=False, batch_size=64),
        model=dict(
            name="GCN",
            width=128,
            depth=4,
            dropout=0.2,
            norm="batch",
            residual=True,
            embed=True,
            readout="mlp",
            pool="max",
        ),
        optimizer=dict(name="adam", learning_rate=3e-3, schedule="cosine"),
        select=dict(metrics=("auc",)),
        expected=dict(
            metric="auc",
            value=0.829,
            std=0.006,
            low=0.80,
            high=0.85,
            source="Wu et al. 2018",
        ),
        steps=25 * EPOCH,
        evaluate=EPOCH,
        every=EPOCH,
    )
