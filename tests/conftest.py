"""Four devices on one CPU: the tests share runs out to them."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
