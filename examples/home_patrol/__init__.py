"""A five-minute patrol of a simulated home: the world, its recording, the truth about it, and a demo that asks."""
