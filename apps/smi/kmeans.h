// What kernels and host of k-means have in common.
#pragma once
#define DIMS 64
#define CLUSTERS 8
#define W 16              // elements of a word
#define WORDS (DIMS / W)  // words of a point
