"""Runs all attacks of a security review at once, and measures what another user notices and what the nodes use.

``python tests/under_attack --seconds 60`` starts three nodes that require an identity. Bob lists a folder, reads 64 KiB and sums
64 MiB on the nodes, again and again. First he is alone. Then strangers attack, and Alice attacks with her own token. The program
prints how long Bob waits in both cases, and the largest size of a node.

- Bob's answers are right, and no request of his is refused because of the others.
- A node stays below its stated size, whatever the requests are.
- After the attacks the nodes work as before.
"""
