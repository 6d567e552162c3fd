// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm_table_check.hpp"

#include <set>
#include <string>
#include <string_view>

#include "transport/shm/algorithms.hpp"

namespace rankmesh_test {

using rankmesh::Operation;
using rankmesh::operation_count;
namespace shm = rankmesh::shm;

bool check_table() {
  bool good = true;
  std::set<std::string_view> names;
  for (std::size_t o = 0; o < operation_count; ++o) {
    const auto operation = static_cast<Operation>(o);
    const shm::Algorithm* last = nullptr;
    bool has_ended = false;
    for (const shm::Algorithm* algorithm : shm::choices_of(operation)) {
      if (algorithm == nullptr) {
        has_ended = true;
        continue;
      }
      last = algorithm;
      const std::string name{algorithm->name};
      if (has_ended) good = fail(name + " is behind the end of its row of the table");
      if (algorithm->operation != operation)
        good = fail(name + " is in the row of operation " + std::to_string(o));
      if (!names.insert(algorithm->name).second) good = fail("two algorithms are called " + name);
      if (algorithm->payload == nullptr) good = fail(name + " has no payload");
    }
    if (last != nullptr && (last->applies != nullptr || last->is_symmetric != nullptr))
      good = fail(std::string{last->name} + " is the last of its row, but not for every call");
    if (!has_ended) good = fail("a row of the table has no null pointer at its end");
    const shm::Algorithm* small = shm::small_algorithms[o];
    if (small != nullptr && (small->operation != operation || small->run_small == nullptr ||
                             small->second.has_value() || small->is_symmetric != nullptr))
      good = fail(std::string{small->name} + " cannot be the small algorithm of operation " +
                  std::to_string(o));
  }
  return good;
}

}  // namespace rankmesh_test
