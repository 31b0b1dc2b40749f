"""GAT looks up a dictionary, Brody et al. 2022 (arXiv:2105.14491): with one head it cannot.

python train.py --config=configs/gat_lookup.py [--config.model.heads=8 --config.model.width=16]

The setting of configs/gatv2_lookup.py, but for the layer, which has biases. All queries rank the
entries alike, so that not even the training set is learnt; eight heads learn it, and little else.
"""

from configs import gatv2_lookup, unpublished


def get_config():
    config = gatv2_lookup.get_config()
    config.model = dict(
        name="GAT", width=128, heads=1, depth=1, self_loops=False, embed=True, readout="linear"
    )
    unpublished(config)
    return config
