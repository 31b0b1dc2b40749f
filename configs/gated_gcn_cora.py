"""GatedGCN on Cora, Bresson & Laurent 2018 (arXiv:1711.07553).

python train.py --config=configs/gated_gcn_cora.py

A citation carries nothing, so an edge learns from its ends alone what its gates let through. Made
for many graphs of more layers, it has no published number here. Few labels ask for less: words are
dropped and not embedded, nothing is normalised, and the last layer answers. Width, dropout and
norm were chosen on the validation nodes; the optimizer is that of configs/gcn_cora.py.
"""

from configs import gcn_cora, unpublished


def get_config():
    config = gcn_cora.get_config()
    config.model = dict(
        name="GatedGCN",
        width=16,
        depth=2,
        dropout=0.7,
        norm="none",
        residual=True,
        embed=False,
        readout="linear",
    )
    config.optimizer.l2_on = ""
    config.select.update(metrics=("loss",), keep="best")
    unpublished(config)
    return config
