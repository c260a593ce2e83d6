"""Many runs: trained group by group, stored in a file, exported as CSV."""
