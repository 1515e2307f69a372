"""Random data sets and random programs over them: Gristmill beside xarray.

``python tests/differential --seed N --programs 100000`` runs many of them; ``tests/test_differential.py`` runs those of one seed.

- ``datasets``, ``variables`` and ``values`` make data sets up, ``written`` writes them, and gives the script that does so.
- ``programs`` makes programs up, out of the steps of ``selections``, ``arithmetic``, ``reductions``, ``groupings`` and ``several``.
- ``ways`` opens a file in each way that Gristmill has.
- ``comparison`` tells what differs; ``bounds`` says how far apart two right numbers may be.
- ``known`` lists the differences that have a reason.
- ``shrinking`` makes a program that differs small; ``runner`` does all that for many programs.

A program is a list of lines of Python. It runs on a data set of xarray and on one of Gristmill, and is made up while it runs on the
former, so that nearly every program has an answer.
"""
