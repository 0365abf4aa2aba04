// ReadAhead: what attention reads after the page at hand, brought into the L2 cache meanwhile.
//
// Every stage of a page's attention asks for a few lines at each step of its loop, softmax and
// folding too: memory then works all the time. Asking only where codes are read leaves it idle for
// a third of the time, and the requests of one loop exceed what a core can have outstanding.
// A step's lines lie in parts of the page far from each other: the processor follows several runs
// of lines at once and fetches further ahead in each than in one.
// Included by target files: only <cstddef> and <cstdint> are included here.
// Thread-safety: plain data of one worker.
#ifndef SHORTHAND_KERNELS_READ_AHEAD_H_
#define SHORTHAND_KERNELS_READ_AHEAD_H_

#include <cstddef>
#include <cstdint>

namespace shorthand {

struct ReadAhead {
  const uint8_t* next = nullptr;  // the first part's first line not yet asked for
  const uint8_t* end = nullptr;   // of the first part
  int parts = 0;                  // a step asks for one line of each
  size_t part_bytes = 0;          // a multiple of 64
};

}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_READ_AHEAD_H_
