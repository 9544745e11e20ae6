"""Where code runs. Knows nothing of the agent SDK and can be used alone."""
