"""What sweep.py is made of: spaces of settings, searches in them, crews that train."""
