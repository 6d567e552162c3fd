// SPDX-License-Identifier: BSD-3-Clause
// The enumerators of records as words.
#pragma once

#include <string_view>

#include "rankmesh/record/record.hpp"

namespace rankmesh::report::detail {

inline std::string_view word_of(record::State state) {
  switch (state) {
    case record::State::issued:
      return "issued";
    case record::State::inside:
      return "inside";
    case record::State::ended:
      return "ended";
    case record::State::failed:
      return "failed";
  }
  return "unknown";
}

inline std::string_view word_of(record::Process process) {
  switch (process) {
    case record::Process::unknown:
      return "unknown";
    case record::Process::running:
      return "running";
    case record::Process::sleeping:
      return "sleeping";
    case record::Process::stopped:
      return "stopped";
    case record::Process::ended:
      return "ended";
  }
  return "unknown";
}

inline std::string_view word_of(record::Presence presence) {
  switch (presence) {
    case record::Presence::open:
      return "open";
    case record::Presence::closed:
      return "closed";
    case record::Presence::destroyed:
      return "destroyed";
    case record::Presence::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace rankmesh::report::detail
