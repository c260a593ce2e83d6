"""Many runs: kept, summarised, compared, drawn and set beside the paper's."""
