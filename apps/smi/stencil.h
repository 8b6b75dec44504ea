// What kernels and host of the stencil have in common.
#pragma once
#define B 4             // memory banks: each has every fourth word of a row
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
