"""GATv2 on Cora, Brody et al. 2022 (arXiv:2105.14491).

python train.py --config=configs/gatv2_cora.py

The setting of configs/gat_cora.py, with one weight matrix for both ends of an edge, as in the
paper's experiments, and so as many parameters as GAT has, but for biases. Its authors published no
number for this split.
"""

from configs import gat_cora, unpublished


def get_config():
    config = gat_cora.get_config()
    config.model = dict(
        name="GATv2",
        width=8,
        heads=8,
        out_heads=1,
        depth=2,
        share=True,
        dropout=0.6,
        attention_dropout=0.6,
    )
    unpublished(config)
    return config
