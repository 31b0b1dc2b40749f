"""GAT on Cora, Veličković et al. 2018 (arXiv:1710.10903), table 2: 83.0 ± 0.7 % (100 runs).

python train.py --config=configs/gat_cora.py --config.seeds=100

As the authors' code has it, not only the paper: a third dropout, on W h where it is mixed; L2 on
every parameter, biases too; patience starts anew when loss or accuracy improves or is equalled,
weights are kept when both are, and those are tested. It allows 100,000 steps; the ten runs here end
between 620 and 1,028.
"""

from configs import base


def get_config():
    return base(
        task=dict(name="Citation", dataset="cora", split="public", splits=10),
        model=dict(
            name="GAT",
            width=8,
            heads=8,
            out_heads=1,
            depth=2,
            dropout=0.6,
            attention_dropout=0.6,
            value_dropout=0.6,
            slope=0.2,
            residual=False,
        ),
        optimizer=dict(name="adam", learning_rate=5e-3, l2=5e-4),
        select=dict(metrics=("loss", "accuracy"), keep="best", ties=True),
        expected=dict(
            value=0.830, std=0.007, low=0.823, high=0.838, source="Veličković et al. 2018, table 2"
        ),
        steps=2000,
        evaluate=1,
        every=10,
        patience=100,
        seeds=10,
    )


def get_sweep():
    return {
        "optimizer.learning_rate": (2e-3, 5e-3, 1e-2),
        "optimizer.l2": (1e-4, 5e-4, 2e-3),
        "model.heads": (1, 4, 8),
    }
