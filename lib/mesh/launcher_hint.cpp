// SPDX-License-Identifier: BSD-3-Clause
#include "detail/launcher_hint.hpp"

#include <atomic>
#include <optional>

#include <fmt/format.h>

#include "rankmesh/base/launcher.hpp"
#include "rankmesh/mpi/environment.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {
namespace {

std::optional<LauncherMismatch> mismatch_of_world() {
  int ranks = 0;
  mpi::check(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size");
  if (ranks != 1) return std::nullopt;
  return launcher_mismatch(ranks, mpi::library_text());
}

}  // namespace

MeshPlan plan_with_hint(const MeshSpec& spec, std::int64_t ranks) {
  try {
    return spec.plan(ranks);
  } catch (const SpecError& error) {
    const auto mismatch = mismatch_of_world();
    if (!mismatch) throw;
    throw SpecError{fmt::format("{}; {}", error.message(), mismatch->message), mismatch->hint,
                    error.position()};
  }
}

void warn_of_deaths(const ControlPlane& control) {
  if (control.rank() != Rank{0}) return;
  const bool spans_nodes = control.placement.node_count() > 1;
  if (const auto end = end_by_death(mpi::library_text(), spans_nodes))
    control.log()->report(
        fmt::format("the mesh may survive lost ranks, but {}; {}", end->message, end->hint));
}

void warn_of_launcher(const ControlPlane& control) {
  const auto mismatch = mismatch_of_world();
  if (!mismatch) return;
  const std::string text = fmt::format("{}; {}", mismatch->message, mismatch->hint);
  static std::atomic_flag is_reported;  // once, however many meshes the program opens
  if (launcher_rank().value_or(0) == 0 && !is_reported.test_and_set())
    control.log()->report(text);
  else
    control.log(LogLevel::warning, text);
}

}  // namespace rankmesh::detail
