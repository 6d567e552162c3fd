// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a mesh tell each other in one collective of MPI, whose wait has a deadline.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/agreement.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::detail {

/// Returns the values of all participants, in the order of their ranks. Collective over them;
/// blocks.
/// @param activity  Names the wait in messages.
template <class T>
std::vector<T> values_of_all(const Participants& participants, const T& own, std::string activity) {
  struct Exchange {
    T own;
    std::vector<T> all;
  };
  const int size = participants.comm.size();
  MpiMemory<Exchange> exchange{own, std::vector<T>(static_cast<std::size_t>(size))};
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Iallgather(&exchange->own, sizeof(T), MPI_BYTE, exchange->all.data(), sizeof(T),
                            MPI_BYTE, participants.comm.native(), &request),
             "MPI_Iallgather");
  exchange.wait(request, *participants.monitor, WaitPoint::of_all(size, std::move(activity)),
                participants.deadline());
  return std::move(exchange->all);
}

/// Returns the highest value of all participants, in the same way.
inline std::uint64_t highest_of_all(const Participants& participants, std::uint64_t own,
                                    std::string activity) {
  MpiMemory<std::array<std::uint64_t, 2>> values{own, std::uint64_t{0}};
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Iallreduce(&(*values)[0], &(*values)[1], 1, MPI_UINT64_T, MPI_MAX,
                            participants.comm.native(), &request),
             "MPI_Iallreduce");
  values.wait(request, *participants.monitor,
              WaitPoint::of_all(participants.comm.size(), std::move(activity)),
              participants.deadline());
  return (*values)[1];
}

}  // namespace rankmesh::detail
