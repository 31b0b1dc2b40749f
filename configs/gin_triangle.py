"""GIN on triangles: does a graph hold one? Graphs that do have as many edges as graphs that do not.

python train.py --config=configs/gin_triangle.py [--config.task.motif=square]

Generated, so that no file is needed. Without features no sum over neighbours tells all of these
graphs apart (Xu et al. 2019): what is learnt here is how far degrees go.
"""

from configs import base


def get_config():
    return base(
        task=dict(name="Motifs", motif="triangle", batch_size=64),
        model=dict(name="GIN", width=64, depth=4, norm="batch", readout="jump", pool="sum"),
        optimizer=dict(name="adam", learning_rate=1e-3, schedule="cosine"),
        select=dict(metrics=("loss",), keep="best"),
        steps=3000,
        evaluate=100,
        every=100,
        seeds=5,
    )
