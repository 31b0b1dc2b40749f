"""GIN on MUTAG, Xu et al. 2019 (arXiv:1810.00826), table 1: GIN-0, 89.4 ± 5.6 % over ten folds.

python train.py --config=configs/gin_mutag.py

Their protocol, as their code has it: no test set. Each fold is validated on the tenth that it does
not train on; the epoch where the mean of the folds is best is taken for all of them, and their
accuracy there is the number. That flatters: configs/gin_mutag_holdout.py is the same without. An
epoch is 50 batches, drawn here without replacement; the rate halves every 50 epochs. Of their grid
(width 16 or 32, batch 32 or 128, dropout 0 or 0.5) one point, fixed before any run.
"""

from configs import base

EPOCH = 50


def get_config():
    return base(
        task=dict(name="TUDataset", dataset="mutag", folds=10, holdout=0.0, batch_size=32),
        model=dict(
            name="GIN",
            width=32,
            depth=4,  # their five layers count the input
            dropout=0.5,
            readout="jump",
            pool="sum",
        ),
        optimizer=dict(
            name="adam",
            learning_rate=1e-2,
            schedule="halves",
            drops=tuple(range(50 * EPOCH, 350 * EPOCH, 50 * EPOCH)),
        ),
        select=dict(metrics=("accuracy",), keep="common"),
        expected=dict(
            value=0.894, std=0.056, low=0.88, high=0.91, source="Xu et al. 2019, table 1"
        ),
        steps=350 * EPOCH,
        evaluate=EPOCH,
        every=EPOCH,
    )
