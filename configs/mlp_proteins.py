"""A bag of nodes on PROTEINS, the baseline of Errica et al. 2020 (arXiv:1912.09893): 75.8 ± 3.7 %.

python train.py --config=configs/mlp_proteins.py

The protocol and the optimizer of configs/gin_proteins_holdout.py. No node hears another: an MLP,
the sum over all nodes, an MLP. It is to be beaten by whatever claims to read a protein's graph.
"""

from configs import gin_proteins_holdout


def get_config():
    config = gin_proteins_holdout.get_config()
    config.model = dict(name="MLP", width=32, depth=2, dropout=0.0, readout="mlp", pool="sum")
    config.expected.update(value=0.758, std=0.037, low=0.72, high=0.78)
    return config
