"""Which of the settings that the paper does not state give its baselines' scores."""
