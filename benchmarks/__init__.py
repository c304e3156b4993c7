"""Measurements that anybody can run; see docs/benchmarks.md."""
