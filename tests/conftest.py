"""Four devices on one CPU: the tests share runs out to them."""

import os

import pytest

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")


@pytest.fixture
def folder(tmp_path):
    """A folder for a sweep."""
    (tmp_path / "sweep").mkdir()
    return tmp_path / "sweep"
