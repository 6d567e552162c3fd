// SPDX-License-Identifier: BSD-3-Clause
// What the programs of the report's rows have in common. A row throws if it fails.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"

namespace gpu_rows {

/// The status with which a row ends that this machine cannot show.
inline constexpr int skipped = 77;

using Arguments = std::vector<std::string>;

/// Does the work of one row on this rank, and returns the exit status: 0 or `skipped`.
using Program = std::function<int(const Arguments&)>;

/// Adds a row to the list from which main() chooses. Use it for objects of namespace scope.
struct Register {
  Register(const char* name, Program program);
};

/// The number of this rank, and the number of ranks. Without a job: 0 and 1.
int rank();
int size();
/// Waits for all ranks of the job.
void meet();

/// Writes a line of the row's output. Only rank 0 writes it.
void print_line(const std::string& line);
template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  print_line(fmt::format(format, std::forward<Values>(values)...));
}
/// Writes the line that the report shows beside the row's result. Only rank 0 writes it.
template <class... Values>
void summarise(fmt::format_string<Values...> format, Values&&... values) {
  print_line("summary: " + fmt::format(format, std::forward<Values>(values)...));
}
/// Writes why this machine cannot show the row, and returns the status of such a row.
int skip(std::string_view why);

/// @throws Error with this text unless the condition holds.
void require(bool condition, const std::string& text);

/// The options of a mesh on this machine: several ranks may share a device where the launcher says
/// so (RANKMESH_TEST_SHARE_DEVICES), and the mesh must use devices.
rankmesh::MeshOptions options();

/// Returns the current time in seconds, from a clock that never goes back.
double now();
double median(std::vector<double> values);
/// Returns the seconds until the device has ended what the call queues on the stream. All ranks
/// begin together.
double seconds(const rankmesh::device::Stream& stream, const std::function<void()>& call);

/// A mesh of all ranks: the group 'all' has the options, and 'tp' has the same ranks and none.
rankmesh::Mesh two_names(const rankmesh::GroupOptions& options_of_all);
inline constexpr std::string_view two_names_text = "tp=auto ; all=tp";

/// Does an all_reduce of ones on the stream, waits for it, and checks the sum.
/// @throws Error if the sum is wrong.
void check_sum(rankmesh::GroupCoordinator& group, rankmesh::StreamRef stream,
               std::size_t count = 1000);

/// Closes the mesh, or aborts it if that throws. Returns how it ended.
std::string end_mesh(rankmesh::Mesh& mesh);
/// Opens another mesh of all ranks, as a program would do after a failure, and checks a sum.
void check_next_mesh();

/// Says how a call that may be refused ended.
struct Outcome {
  bool refused = false;  ///< It threw a UsageError, which also UnknownName and ClosedError are.
  std::string text;      ///< The text of the exception; empty if the call returned.
};
/// Calls the function. Exceptions other than UsageError leave this function.
Outcome try_call(const std::function<void()>& call);

}  // namespace gpu_rows
