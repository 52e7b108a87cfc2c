"""Language-model engines."""
