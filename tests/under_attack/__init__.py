"""What other users notice while all attacks of a security review run at once, and what the nodes use.

``python tests/under_attack --seconds 60`` starts three nodes that ask who everybody is. Bob lists a folder, reads 64 KiB and sums
64 MiB on the nodes, again and again: first alone, then while strangers, and Alice with a token of hers, attack. It prints how long
Bob waits in both, and the largest size of a node.

- Bob's answers are right, and none is refused for what others do.
- A node stays below its stated size, whatever is asked of it.
- After the attacks the nodes work as before.
"""
