"""Files, and the interface behind which a simulated disk can be."""
