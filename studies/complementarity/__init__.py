"""Whether a gate and a temperature add to each other under both kinds of noise."""
