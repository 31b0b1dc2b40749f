"""Graph Transformer on Cora, Dwivedi & Bresson 2021 (arXiv:2012.09699), with Laplacian positions.

python train.py --config=configs/graph_transformer_cora.py

A Transformer's layer whose words hear their neighbours. Made for many small graphs, it has no
published number here; of the authors' setting there are the embedding, batch norm, residuals, an
MLP of twice the width and eigenvectors whose signs flip in training. Smaller, and with dropout, as
one graph with few labels needs it; the optimizer is that of configs/gcn_cora.py.
"""

from configs import gcn_cora


def get_config():
    config = gcn_cora.get_config()
    config.task.update(positions="laplacian", dimensions=8)
    config.model = dict(
        name="GraphTransformer", width=32, heads=4, depth=2, dropout=0.5, readout="linear"
    )
    config.optimizer.l2_on = ""
    config.select.update(metrics=("loss",), keep="best")
    config.expected.update(value=0.0, low=0.0, high=0.0, source="")
    return config
