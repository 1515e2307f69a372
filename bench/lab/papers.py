"""The measurements in the texts of the papers.

Their figures are pictures, and we have only the texts. A curve here is made from numbers in the text, and the caption says which.
It shows what a figure must look like if the text is true. It was not read off a figure.
"""

# Son 2010, table II: SUM and GREP of 512 MB on four clients and four servers, in seconds.
SON_SUM_FOUR = 1.38

SON_GREP_FOUR = 1.49

# The same for KMEANS: 10^6 points of 10 doubles, threshold 1.0. (The table says 40 MB; such points have 80.) Section V.C:
# thresholds of 0.05 and 0.01.
SON_KMEANS_FOUR, SON_KMEANS_05, SON_KMEANS_01 = 0.44, 0.8, 5.2
SON_POINTS = 10**6

# Son 2010, section V.A: the share of reading under TS. These are the smallest and the largest of four kernels, and their average.
SON_LEAST_READING, SON_MOST_READING, SON_READING = 0.373, 0.964, 0.644

# Son 2010, section V.D: reading on the same node takes 73 % less time than over the network. Active storage takes 53.1 % less time
# than reading on the same node.
SON_SAME = 1 - 0.73
SON_ACTIVE = SON_SAME * (1 - 0.531)

# Son 2010, section V.A: on the average of four kernels AS takes 50.9 % less time than TS.
SON_AVERAGE = 1 - 0.509

SON_CURVES = (
    "1.38 s for SUM and 1.49 s for GREP under TS on four nodes (table II of the paper), and AS at 0.27 x 0.469 of TS (its "
    "averages over all sizes on one node, section V.D); that time goes with the size and against the number of nodes is "
    "our assumption, and the paper says that AS gains more with more data"
)

# DOSAS, table III and section IV.A: bytes a second of one core for SUM, bytes a second of a link, and cores of a storage node.
DOSAS_SUM, DOSAS_LINK, DOSAS_CORES = 860e6, 118e6, 2

# Table III: the same for the Gaussian filter.
DOSAS_GAUSSIAN = 80e6
