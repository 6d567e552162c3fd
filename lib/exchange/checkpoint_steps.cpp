// SPDX-License-Identifier: BSD-3-Clause
#include "detail/checkpoint_steps.hpp"

#include <exception>
#include <new>

#include <fmt/format.h>

#include "detail/tensor_kind.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange::detail {

void on_all(GroupCoordinator& group, const std::string& activity, const std::function<void()>& step,
            const std::vector<std::string>& arguments) {
  Comparison mine{.function = UserFunction::none,  // the caller says it
                  .describe =
                      [&] {
                        return Arguments{activity, arguments};
                      },
                  .hint =
                      "fix what the ranks that failed report, and pass the same arguments on "
                      "all ranks"};
  try {
    step();
  } catch (const Error&) {
    mine.failure = std::current_exception();
  } catch (const std::bad_alloc&) {
    mine.failure = std::make_exception_ptr(
        Error{activity + ": there is too little memory", "lower CheckpointOptions::memory"});
  } catch (const std::exception& error) {
    mine.failure = std::make_exception_ptr(Error{fmt::format("{}: {}", activity, error.what())});
  }
  agree(group, hash_of(mine.describe()), mine);
}

void MovingBatch::check(Rank self) const {
  for (std::size_t t = 0; t < moves.size(); ++t)
    TensorKind{moves[t], self}.check(moves[t], sources[t], targets[t], MemoryKind::host);
}

void MovingBatch::run(GroupCoordinator& group, std::int64_t memory_of_rank) {
  RedistributionOptions options;
  options.memory = std::clamp(memory_of_rank, std::int64_t{4096}, options.memory);
  Redistribution move{group, plan_transfer(moves), options};
  run_or_leak([&] { move.start(sources, targets).wait(); }, memory);
}

PieceMemory::PieceMemory(const TensorInFile& tensor, std::int64_t self, std::int64_t ranks)
    : tensor_{&tensor}, self_{self}, ranks_{ranks}, place_{tensor.place(ranks)} {
  memory_.resize(static_cast<std::size_t>(place_.local_count(Rank{self})) *
                 size_of(tensor.tensor.type));
}

}  // namespace rankmesh::exchange::detail
