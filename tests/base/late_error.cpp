// SPDX-License-Identifier: BSD-3-Clause
// late_error: a static object that is destroyed after the objects of the main thread creates an
// error. No memory of others may change.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "rankmesh/base/error.hpp"

namespace {

void meet_an_error() {
  try {
    throw rankmesh::UsageError{"an error", "a hint"};
  } catch (const rankmesh::Error&) {
  }
}

// Blocks of the sizes that freed memory of an error may have.
class Blocks {
 public:
  Blocks() {
    for (int i = 0; i < 64; ++i)
      for (const std::size_t size : {24U, 40U, 56U})
        // calloc would not take memory that was freed just before.
        list_.push_back(
            {static_cast<unsigned char*>(std::memset(std::malloc(size), 0, size)), size});
  }
  [[nodiscard]] bool are_intact() const {
    for (const Block& block : list_)
      for (std::size_t i = 0; i < block.size; ++i)
        if (block.data[i] != 0) return false;
    return true;
  }

 private:
  struct Block {
    unsigned char* data;
    std::size_t size;
  };
  std::vector<Block> list_;
};

struct Late {
  ~Late() {
    const Blocks blocks;
    meet_an_error();
    if (blocks.are_intact()) return;
    std::puts("the memory of another object was overwritten");
    std::_Exit(1);
  }
} late;

}  // namespace

int main() { meet_an_error(); }
