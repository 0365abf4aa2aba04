// ReadAhead: what attention reads after the page at hand, brought into the L2 cache meanwhile.
//
// Every stage of a page's attention asks for a few lines at each step of its loop, softmax and
// folding too: memory then works all the time. Asking only where codes are read leaves it idle for
// a third of the time, and the requests of one loop exceed what a core can have outstanding.
// Included by target files: only <cstdint> is included here.
// Thread-safety: plain data of one worker.
#ifndef SHORTHAND_KERNELS_READ_AHEAD_H_
#define SHORTHAND_KERNELS_READ_AHEAD_H_

#include <cstdint>

namespace shorthand {

struct ReadAhead {
  const uint8_t* next = nullptr;  // the first line not yet asked for
  const uint8_t* end = nullptr;
  int bytes_per_step = 0;  // a multiple of 64
};

}  // namespace shorthand

#endif  // SHORTHAND_KERNELS_READ_AHEAD_H_
