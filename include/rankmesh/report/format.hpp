// SPDX-License-Identifier: BSD-3-Clause
// The output forms of a report, and the facts that only a running job has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/layout/placement.hpp"
#include "rankmesh/report/nccl_choice.hpp"

namespace rankmesh::report {

/// The forms of a report. `long_csv` has one row for each rank and name, as pandas and R expect it;
/// a report that does not list groups has the rows of `csv` instead. `svg` and `html` are the
/// picture of the report: a drawing, and a page that a browser opens.
enum class Format : std::uint8_t { text, json, csv, long_csv, svg, html };

/// How the text form of a report looks.
struct TextStyle {
  bool colour = false;  ///< true if the text may contain ANSI escape codes
  /// The columns of the terminal. No line is wider, unless a single word is. Texts are continued on
  /// further lines, lists of ranks are shortened, and a table with too many columns is divided.
  std::size_t width = SIZE_MAX;
};

/// Receives a report piece by piece. The sink may throw an exception to end the report.
using Sink = std::function<void(std::string_view)>;

/// Facts that only a running job has. They are gathered on the rank that prints the report.
struct LiveFacts {
  Placement placement;                    ///< The node of each rank.
  std::vector<std::string> hosts;         ///< host name of each node
  std::vector<std::int64_t> process_ids;  ///< process ID of each rank
  std::vector<int> devices{};    ///< CUDA's device number of each rank; empty without devices
  std::string why_no_devices{};  ///< the reason why there are no devices, if there are none
  /// The durations of the phases of NCCL's bootstrap, in seconds. Each duration is the maximum over
  /// all ranks.
  struct Phases {
    double unique_ids = 0;  ///< For creating the unique IDs.
    double broadcasts = 0;  ///< For broadcasting them.
    double barriers = 0;    ///< In the barriers of the groups.
    double inits = 0;       ///< In the inits of NCCL.
    double splits = 0;      ///< In the splits of NCCL.
  };
  std::optional<Phases> phases{};  ///< not set if the mesh has no devices
  /// The costs of opening the communicators of one family. Each figure is the maximum over all
  /// ranks.
  struct Opened {
    double warm_up = 0;               ///< seconds
    std::int64_t device_memory = -1;  ///< bytes per communicator; -1 if no communicator was opened
  };
  std::vector<Opened> opened{};  ///< one entry per family
  /// What NCCL chose on each rank; empty if it is not known.
  std::vector<NcclChoice> nccl{};
};

}  // namespace rankmesh::report
