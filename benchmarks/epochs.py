"""An epoch of training on Cora, ours beside both peers."""

from benchmarks.compare import compare, ours, peer

EPOCHS = 300
# What a peer's script does: nothing is validated, the last weights are tested.
PLAIN = ("seeds=1", "evaluate=0", "patience=0", "select.keep=last", "every=50", f"steps={EPOCHS}")


def epochs(model: str, notes: str, *settings: str) -> None:
    """Measures an epoch of "gat" or "gcn", as configs/{model}_cora.py has it but for `settings`."""
    words = [f"--config.{setting}" for setting in (*PLAIN, *settings)]
    own = lambda summary: 1000 * summary["seconds"]["train"] / EPOCHS
    theirs = lambda found: 1000 * found["epoch"]
    script = "benchmarks/peer_cora.py", model, f"--epochs={EPOCHS}"
    sides = {
        "ours": ours("train.py", f"--config=configs/{model}_cora.py", *words, value=own),
        "PyTorch Geometric": peer(theirs, *script),
        "tuned torch": peer(theirs, *script, "--sparse"),
    }
    compare(f"{model}_cora", "ms an epoch", notes, sides)
