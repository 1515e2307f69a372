"""Real work on a cluster while its nodes and clients are killed, stopped and continued at random times.

``python tests/random_faults --seed S --seconds N`` prints the number of faults and commands, and what went wrong. The same seed
gives the same work and the same faults; their timing differs from run to run.

- An answer is right to the bit, or the command fails with one line.
- An acknowledged change is there. After a failed command or a killed client, a file has its old or its new content.
- No objects, threads, descriptors or memory are left behind.
"""
