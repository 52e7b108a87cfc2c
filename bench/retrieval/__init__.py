"""Retrievers: passages on disk, indexes over them, and diagnostics that bound what retrieval can do."""
