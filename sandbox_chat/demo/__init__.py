"""The offline demo model: a Messages endpoint on loopback with a small rule-based agent."""
