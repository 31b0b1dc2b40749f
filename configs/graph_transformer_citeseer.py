"""Graph Transformer on CiteSeer, Dwivedi & Bresson 2021 (arXiv:2012.09699).

python train.py --config=configs/graph_transformer_citeseer.py

The setting of configs/graph_transformer_cora.py.
"""

from configs import graph_transformer_cora


def get_config():
    config = graph_transformer_cora.get_config()
    config.task.dataset = "citeseer"
    return config
