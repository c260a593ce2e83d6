"""One sweep on several machines: Ray's workers, and the stores of shards merged."""
