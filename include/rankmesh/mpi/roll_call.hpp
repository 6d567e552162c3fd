// Who is missing when a deadline passes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/communicator.hpp"

namespace rankmesh::mpi {

/// Waits for requests with a deadline and finds out, once it has passed, who did not come.
///
/// A rank that waits answers questions meanwhile; a rank whose deadline passes asks the other members what
/// they are doing: who waits for the same step is present, who waits for another is named with it, who does
/// not answer is missing. Its verdict ends the wait of those who are present, so that all throw the same
/// error. Cost: nothing but a probe per poll while all goes well; after a timeout 64 bytes to and from each
/// member.
///
/// Messages travel on the communicator given, with the three highest tags that every MPI offers.
class RANKMESH_API RollCall {
 public:
  /// What a step is, the same on every member: `key` identifies it, `activity` is for people, `members` are
  /// ranks of the communicator.
  struct Step {
    std::uint64_t key = 0;
    std::string activity;
    std::vector<int> members;
  };

  /// @param describe  names a rank with its coordinates, for messages.
  RollCall(CommunicatorView comm, std::function<std::string(Rank)> describe);

  /// Polls until all requests are complete.
  /// @throws TimeoutError naming the missing ranks. The requests are then still active and their memory lent.
  void wait(std::span<MPI_Request> requests, const Step& step, const Deadline& deadline);
  /// The same for anything that can be asked whether it is done.
  void wait(const std::function<bool()>& done, const Step& step, const Deadline& deadline);

 private:
  void serve(const Step& step);
  bool conclude(const std::function<bool()>& done, const Step& step, const Deadline& deadline);

  CommunicatorView comm_;
  std::function<std::string(Rank)> describe_;
};

}  // namespace rankmesh::mpi
