"""The broker's session in the cluster, and the plan of partition leaders."""
