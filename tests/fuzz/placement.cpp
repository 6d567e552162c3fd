// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes places of tensors, and plans between two of them: FROM > TO.
#include <algorithm>
#include <string>

#include "check.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/transfer/plan.hpp"
#include "require.hpp"

namespace {

using rankmesh::TensorPlacement;

constexpr std::int64_t most_ranks = 64;

void require_explained(const rankmesh::Error& error) {
  require(!error.message().empty(), "an error has a message", error.what());
  require(!error.hint().empty(), "an error has a hint", error.what());
}

// Every rank has distinct elements of the tensor, in a dense memory.
void check_ranks(const TensorPlacement& place) {
  if (place.ranks().size() > most_ranks) return;
  for (const rankmesh::Rank rank : place.ranks().to_vector()) {
    const auto shape = place.local_shape(rank);
    for (std::size_t a = 0; a < shape.size(); ++a) {
      std::int64_t local = 0;
      for (const rankmesh::AxisRun& run : place.runs(rank, a)) {
        require(run.local == local && run.count > 0, "runs are dense", place.to_string());
        require(run.global >= 0 && run.global + run.count <= place.shape()[a],
                "runs are inside the axis", place.to_string());
        local += run.count;
      }
      require(local == shape[a], "the runs make up the memory", place.to_string());
    }
  }
}

// A plan moves what each rank needs and does not have.
void check_plan(const TensorPlacement& from, const TensorPlacement& to) {
  if (std::max(from.ranks().size(), to.ranks().size()) > most_ranks) return;
  const auto plan = plan_transfer(from, to);
  std::int64_t least = 0;
  for (const rankmesh::Rank rank : to.ranks().to_vector())
    least += to.local_count(rank) - common_elements(from, rank, to, rank);
  const auto volume = plan.volume();
  require(volume.moved_bytes == volume.least_moved_bytes, "the lower bound is reached");
  require(!from.sums().empty() ||
              volume.moved_bytes == least * static_cast<std::int64_t>(
                                                std::min(size_of(from.type()), size_of(to.type()))),
          "what is needed is moved");
}

TensorPlacement parsed(std::string_view text) {
  auto place = TensorPlacement::parse(text);
  require(TensorPlacement::parse(place.to_string()).to_string() == place.to_string(),
          "the canonical form is read and written alike", place.to_string());
  check_ranks(place);
  return place;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  const std::size_t arrow = input.find('>');
  try {
    const TensorPlacement from = parsed(input.substr(0, arrow));
    if (arrow != std::string_view::npos) check_plan(from, parsed(input.substr(arrow + 1)));
  } catch (const rankmesh::SpecError& error) {
    require_explained(error);
  } catch (const rankmesh::UsageError& error) {
    require_explained(error);
  }
  return 0;
}
