"""GATv2 looks up a dictionary, Brody et al. 2022 (arXiv:2105.14491), section 4.1: one head, 100 %.

python train.py --config=configs/gatv2_lookup.py

Each of ten queries hears the same ten entries and has to attend to the one of its own key. As in
the authors' code: one layer of width 128, both ends of an edge by one matrix, no biases, no
self-loops, Adam at 0.001. Theirs trains on other permutations than it tests on, and so does this.
"""

from configs import base


def get_config():
    return base(
        task=dict(name="DictionaryLookup", k=10),
        model=dict(
            name="GATv2",
            width=128,
            heads=1,
            depth=1,
            share=True,
            bias=False,
            self_loops=False,
            embed=True,
            readout="linear",
        ),
        optimizer=dict(name="adam", learning_rate=1e-3),
        select=dict(metrics=("loss",), keep="best"),
        expected=dict(value=1.0, low=0.9995, high=1.0, source="Brody et al. 2022, section 4.1"),
        steps=5000,
        evaluate=250,
        every=250,
        seeds=5,
    )
