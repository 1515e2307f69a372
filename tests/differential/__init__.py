"""Random programs over random data sets: a comparison of Gristmill with xarray.

``python tests/differential --seed N --programs 100000`` runs many of them; ``tests/test_differential.py`` runs those of one seed.

- ``datasets``, ``variables`` and ``values`` make data sets. ``written`` writes them, and gives the script that does so.
- ``programs`` makes programs from the steps of ``selections``, ``arithmetic``, ``reductions``, ``groupings`` and ``several``.
- ``ways`` opens a file in each way that Gristmill has.
- ``comparison`` finds differences; ``bounds`` says how far apart two right numbers may be.
- ``known`` lists the differences that have a reason.
- ``shrinking`` makes a program with a difference small; ``runner`` does all of this for many programs.

A program is a list of lines of Python. It runs on a data set of xarray and on one of Gristmill. Each line runs on the data set of
xarray as soon as it is made, so that nearly every program has an answer.
"""
