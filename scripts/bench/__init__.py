"""The benchmarks: `python3 scripts/bench [--quick] [--only NAME] [--json FILE]` (docs/performance.md)."""
