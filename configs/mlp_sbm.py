"""MLP on a stochastic block model: what a node's own numbers say, the baseline of the graph.

python train.py --config=configs/mlp_sbm.py

The setting of configs/gcn_sbm.py without the graph, and with biases. No number is published.
"""

from configs import gcn_sbm


def get_config():
    config = gcn_sbm.get_config()
    config.model.name = "MLP"
    return config
