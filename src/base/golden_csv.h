// For tests: rows of a golden CSV file, header dropped, without quoting (no golden file has any).
// A file is looked for in $SHORTHAND_DATA/golden, then in ../shared/data/golden beside the source
// tree ($SHORTHAND_SOURCE_DIR). No rows: it is not there, and the test skips.
// Thread-safety: pure functions.
#ifndef SHORTHAND_BASE_GOLDEN_CSV_H_
#define SHORTHAND_BASE_GOLDEN_CSV_H_

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace shorthand {

using CsvRows = std::vector<std::vector<std::string>>;

inline CsvRows ReadCsv(const std::string& path) {
  CsvRows rows;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::vector<std::string> row(1);
    for (char c : line) {
      if (c == ',') {
        row.emplace_back();
      } else {
        row.back() += c;
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

inline CsvRows ReadGoldenCsv(const std::string& name) {
  if (const char* data = std::getenv("SHORTHAND_DATA")) {
    return ReadCsv(std::string(data) + "/golden/" + name);
  }
  const char* source = std::getenv("SHORTHAND_SOURCE_DIR");
  return ReadCsv(std::string(source != nullptr ? source : ".") + "/../shared/data/golden/" + name);
}

}  // namespace shorthand

#endif  // SHORTHAND_BASE_GOLDEN_CSV_H_
