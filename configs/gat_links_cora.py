"""Links of Cora by attention: GAT as the encoder, an MLP as the judge of pairs.

python train.py --config=configs/gat_links_cora.py

Any encoder and any scorer go together; here links are told from other pairs that are drawn anew in
every step, and the weights with the best validation are tested. No number was published for it.
"""

from configs import gae_cora, unpublished


def get_config():
    config = gae_cora.get_config()
    config.task.objective = "sampled"
    encoder = dict(name="GAT", out=32, width=8, heads=8, dropout=0.5, attention_dropout=0.5)
    config.model = dict(name="Pairs", encoder=encoder, scorer="mlp", width=32)
    config.optimizer.update(learning_rate=5e-3, l2=5e-4)
    config.select.keep = "best"
    unpublished(config)
    return config
