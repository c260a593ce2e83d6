"""The steps of the proofs of both theorems, checked against simulation."""
