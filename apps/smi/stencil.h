// What kernels and host of the stencil have in common.
#pragma once
#ifndef B
#define B 4  // memory banks, 1 or 4: each has every B-th word of a row
#endif
#define W 16            // elements of a word
#define MAX_WIDTH 4096  // elements of a row of a tile, at most
#define MAX_WORDS (MAX_WIDTH / (B * W))
// Ports.
#define UP 0
#define DOWN 1
#define LEFT 2
#define RIGHT 3
// Which neighbours a rank has.
#define HAS_UP 1
#define HAS_DOWN 2
#define HAS_LEFT 4
#define HAS_RIGHT 8
