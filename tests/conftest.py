"""Four devices on one CPU, so that sharing runs out is tested; keep what is compiled."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
