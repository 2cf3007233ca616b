"""What happens to the process, the disk and the cache, not to the data: kills, full disks, broken caches."""
