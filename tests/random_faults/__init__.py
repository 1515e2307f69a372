"""Real work on a cluster while its nodes and clients are killed, stopped and continued at random times.

``python tests/random_faults --seed S --seconds N`` prints what was asked, which faults it survived, and what went wrong. The
same seed draws the same work and the same faults; when they meet differs from run to run.

- An answer is right to the bit, or an error of one line.
- What was acknowledged is there. What was told as failed, and what a killed client left, is as before or as it was to be.
- Nothing is left behind: objects, threads, descriptors, memory.
"""
