"""Every step of both proofs, checked against simulation."""
