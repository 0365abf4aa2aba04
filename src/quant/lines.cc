// Codes <-> lines of 64 bytes in the order kernels consume them. docs/formats/page.md
#include <array>

#include "quant/page.h"

namespace shorthand {
namespace {

constexpr int kTileLanes = 16;  // tokens of a K tile, channels of a V tile
constexpr int kTileDepth = 4;   // channels of a K tile, tokens of a V tile
constexpr int kMaxPackTiles = 8;

// Tiles that are packed together, and the lines that they take.
struct Pack {
  int tiles;
  int lines;
};
constexpr Pack PackOf(int bits) {
  switch (bits) {
    case 2:
      return {4, 1};
    case 3:
      return {8, 3};
    case 4:
      return {2, 1};
    case 5:
      return {8, 5};
    case 6:
      return {4, 3};
    default:
      return {1, 1};
  }
}

// First token and channel of the n-th tile.
struct Origin {
  int token;
  int channel;
};

Origin KeyOrigin(int padded_dim, int n) {
  const int tiles_a_pair = padded_dim / kTileDepth * 2;
  const int pair = n / tiles_a_pair, within = n % tiles_a_pair;
  return {(2 * pair + within % 2) * kTileLanes, within / 2 * kTileDepth};
}

Origin ValueOrigin(int padded_dim, int n) {
  const int quads = kPageTokens / kTileDepth;
  const int pairs = padded_dim / (2 * kTileLanes);
  const int pair = n / (2 * quads), within = n % (2 * quads);
  if (pair == pairs) return {within * kTileDepth, 2 * pair * kTileLanes};
  return {within / 2 * kTileDepth, (2 * pair + within % 2) * kTileLanes};
}

// Calls f(index in tile, index in codes) for the tile at `origin`.
template <typename F>
void ForEachInTile(SideKind kind, int padded_dim, Origin origin, F f) {
  const bool key = kind == SideKind::kKey;
  const int lane_stride = key ? padded_dim : 1, depth_stride = key ? 1 : padded_dim;
  const int start = origin.token * padded_dim + origin.channel;
  for (int lane = 0; lane < kTileLanes; ++lane) {
    for (int depth = 0; depth < kTileDepth; ++depth) {
      f(lane * kTileDepth + depth, start + lane * lane_stride + depth * depth_stride);
    }
  }
}

// The same byte of every tile of a pack <-> that byte of its lines.
void PackByte(int bits, const uint8_t* code, uint8_t* lines) {
  const auto line = [lines](int i) -> uint8_t& { return lines[i * kLineBytes]; };
  const auto nibbles = [code](int i) { return (code[2 * i] & 15) | (code[2 * i + 1] & 15) << 4; };
  switch (bits) {
    case 2:
      line(0) = code[0] | code[1] << 2 | code[2] << 4 | code[3] << 6;
      break;
    case 3: {
      const int spread = code[6] | code[7] << 3;
      for (int i = 0; i < 3; ++i) {
        line(i) = code[2 * i] | code[2 * i + 1] << 3 | (spread >> (2 * i) & 3) << 6;
      }
      break;
    }
    case 4:
      line(0) = nibbles(0);
      break;
    case 5:
      line(0) = 0;
      for (int i = 0; i < 8; ++i) line(0) |= (code[i] >> 4) << i;
      for (int i = 0; i < 4; ++i) line(1 + i) = nibbles(i);
      break;
    case 6:
      line(0) = 0;
      for (int i = 0; i < 4; ++i) line(0) |= (code[i] >> 4) << (2 * i);
      for (int i = 0; i < 2; ++i) line(1 + i) = nibbles(i);
      break;
    default:
      line(0) = code[0];
  }
}

void UnpackByte(int bits, const uint8_t* lines, uint8_t* code) {
  const auto line = [lines](int i) -> int { return lines[i * kLineBytes]; };
  const auto nibble = [line](int first, int i) {
    return line(first + i / 2) >> (4 * (i % 2)) & 15;
  };
  switch (bits) {
    case 2:
      for (int i = 0; i < 4; ++i) code[i] = line(0) >> (2 * i) & 3;
      break;
    case 3: {
      for (int i = 0; i < 6; ++i) code[i] = line(i / 2) >> (3 * (i % 2)) & 7;
      const int spread = line(0) >> 6 | line(1) >> 6 << 2 | line(2) >> 6 << 4;
      code[6] = spread & 7;
      code[7] = spread >> 3;
      break;
    }
    case 4:
      for (int i = 0; i < 2; ++i) code[i] = nibble(0, i);
      break;
    case 5:
      for (int i = 0; i < 8; ++i) code[i] = (line(0) >> i & 1) << 4 | nibble(1, i);
      break;
    case 6:
      for (int i = 0; i < 4; ++i) code[i] = (line(0) >> (2 * i) & 3) << 4 | nibble(1, i);
      break;
    default:
      code[0] = lines[0];
  }
}

// One pack whose i-th tile is at origin(i).
template <typename OriginOf>
void PackTiles(SideKind kind, int padded_dim, int bits, OriginOf origin, const uint8_t* codes,
               uint8_t* lines) {
  std::array<uint8_t, kLineBytes * kMaxPackTiles> by_byte;  // [64][8]: a byte of every tile
  for (int i = 0; i < PackOf(bits).tiles; ++i) {
    ForEachInTile(kind, padded_dim, origin(i),
                  [&](int byte, int at) { by_byte[byte * kMaxPackTiles + i] = codes[at]; });
  }
  for (size_t j = 0; j < kLineBytes; ++j) {
    PackByte(bits, by_byte.data() + j * kMaxPackTiles, lines + j);
  }
}

template <typename OriginOf>
void UnpackTiles(SideKind kind, int padded_dim, int bits, OriginOf origin, const uint8_t* lines,
                 uint8_t* codes) {
  std::array<uint8_t, kLineBytes * kMaxPackTiles> by_byte;
  for (size_t j = 0; j < kLineBytes; ++j) {
    UnpackByte(bits, lines + j, by_byte.data() + j * kMaxPackTiles);
  }
  for (int i = 0; i < PackOf(bits).tiles; ++i) {
    ForEachInTile(kind, padded_dim, origin(i),
                  [&](int byte, int at) { codes[at] = by_byte[byte * kMaxPackTiles + i]; });
  }
}

// Calls f(origins of a pack, lines before it) for every pack of a side.
template <typename F>
void ForEachPack(SideKind kind, int padded_dim, int bits, F f) {
  const Pack pack = PackOf(bits);
  const int tiles = kPageTokens * padded_dim / static_cast<int>(kLineBytes);
  for (int first = 0, line = 0; first < tiles; first += pack.tiles, line += pack.lines) {
    f(
        [=](int i) {
          return kind == SideKind::kKey ? KeyOrigin(padded_dim, first + i)
                                        : ValueOrigin(padded_dim, first + i);
        },
        line);
  }
}

// The same with the width of every pack: quads of channels, each the eight token tiles in order.
template <typename F>
void ForEachPlanePack(int padded_dim, const uint8_t* widths, F f) {
  int line = 0;
  for (int quad = 0; quad < padded_dim / kTileDepth; ++quad) {
    const Pack pack = PackOf(widths[quad]);
    for (int first = 0; first < kPageTokens / kTileLanes; first += pack.tiles) {
      f([=](int i) { return Origin{(first + i) * kTileLanes, quad * kTileDepth}; }, widths[quad],
        line);
      line += pack.lines;
    }
  }
}

}  // namespace

void PackCodes(SideKind kind, int padded_dim, int bits, const uint8_t* codes, uint8_t* lines) {
  ForEachPack(kind, padded_dim, bits, [&](auto origin, int line) {
    PackTiles(kind, padded_dim, bits, origin, codes, lines + line * kLineBytes);
  });
}

void UnpackCodes(SideKind kind, int padded_dim, int bits, const uint8_t* lines, uint8_t* codes) {
  ForEachPack(kind, padded_dim, bits, [&](auto origin, int line) {
    UnpackTiles(kind, padded_dim, bits, origin, lines + line * kLineBytes, codes);
  });
}

void PackPlanes(int padded_dim, const uint8_t* widths, const uint8_t* codes, uint8_t* lines) {
  ForEachPlanePack(padded_dim, widths, [&](auto origin, int bits, int line) {
    PackTiles(SideKind::kKey, padded_dim, bits, origin, codes, lines + line * kLineBytes);
  });
}

void UnpackPlanes(int padded_dim, const uint8_t* widths, const uint8_t* lines, uint8_t* codes) {
  ForEachPlanePack(padded_dim, widths, [&](auto origin, int bits, int line) {
    UnpackTiles(SideKind::kKey, padded_dim, bits, origin, lines + line * kLineBytes, codes);
  });
}

}  // namespace shorthand
