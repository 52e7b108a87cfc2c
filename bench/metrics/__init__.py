"""Named, versioned answer and retrieval metrics."""
