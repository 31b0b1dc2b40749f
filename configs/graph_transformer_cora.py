"""Graph Transformer on Cora, Dwivedi & Bresson 2021 (arXiv:2012.09699), with Laplacian positions.

python train.py --config=configs/graph_transformer_cora.py

A Transformer's layer whose words hear their neighbours. Made for many small graphs, it has no
published number here; of the authors' setting there are the embedding, residuals, the width and
heads, an MLP of twice the width and eigenvectors whose signs flip in training. One graph with few
labels asks for fewer layers, for much dropout and L2, and for layer norm, which were chosen on the
validation nodes. The exact softmax stands for the authors' clamped one.
"""

from configs import gcn_cora, unpublished


def get_config():
    config = gcn_cora.get_config()
    config.task.update(positions="laplacian", dimensions=8)
    config.model = dict(
        name="GraphTransformer",
        width=64,
        heads=8,
        depth=2,
        dropout=0.8,
        norm="layer",
        residual=True,
        embed=True,
        readout="linear",
        clamp=0.0,
    )
    config.optimizer.update(learning_rate=5e-3, l2=5e-3, l2_on="")
    config.select.update(metrics=("loss",), keep="best")
    unpublished(config)
    return config
