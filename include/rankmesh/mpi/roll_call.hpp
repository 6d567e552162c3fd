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
/// not answer is missing. Its verdict ends the wait of those who answered, so that they throw the same error;
/// ranks whose deadlines pass at the same moment find out for themselves. Cost: nothing but a probe per 64
/// polls while all goes well; after a timeout 88 bytes to and from each member.
///
/// Messages travel on the communicator given, with the tags 32765-32767. On one that is shared with the user,
/// nothing is received before a wait has lasted 5 s (or half its deadline), and then only messages of exactly
/// our size and mark.
class RANKMESH_API RollCall {
 public:
  /// What a step is, the same on every member: `key` identifies it, `activity` is for people, `members` are
  /// ranks of the communicator.
  struct Step {
    std::uint64_t key = 0;
    std::string activity;
    std::vector<int> members;
  };

  /// Whose messages travel on the communicator.
  enum class Audience : std::uint8_t { own, shared };

  /// @param describe  names a rank with its coordinates, for messages.
  RollCall(CommunicatorView comm, Audience audience, std::function<std::string(Rank)> describe);

  /// Polls until all requests are complete.
  /// @throws TimeoutError naming the missing ranks. The requests are then still active and their memory lent.
  void wait(std::span<MPI_Request> requests, const Step& step, const Deadline& deadline);
  /// The same for anything that can be asked whether it is done.
  void wait(const std::function<bool()>& done, const Step& step, const Deadline& deadline);

  /// Ends the wait of every other member that is in this step, or comes to it, with a TimeoutError of this
  /// message: this rank failed and will not complete it.
  void give_up(const Step& step, const std::string& message);

 private:
  void serve(const Step& step);
  bool conclude(const std::function<bool()>& done, const Step& step, const Deadline& deadline);

  CommunicatorView comm_;
  Audience audience_;
  std::uint64_t questions_ = 0;  // asked so far; answers carry the number
  std::function<std::string(Rank)> describe_;
};

}  // namespace rankmesh::mpi
