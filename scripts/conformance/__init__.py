"""The protocol's own test programs against our server: `python3 scripts/conformance` (docs/conformance.md)."""
