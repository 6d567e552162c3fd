// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a mesh on several nodes tell each other about losses.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "loss_agreement.hpp"
#include "node_board.hpp"

namespace rankmesh::detail {

/// Where a process receives datagrams. Several nodes may have the same address on networks of their
/// own, so each is tried until the process has answered.
struct LossAddress {
  std::array<in_addr_t, 6> hosts{};  ///< 0: none.
  in_port_t port = 0;
};

class LossLink;

/// The socket of this process, and the thread that reads it. The last owner ends the thread.
class LossPort {
 public:
  /// @throws std::system_error
  static std::shared_ptr<LossPort> of_process();
  LossPort();
  ~LossPort();
  LossPort(const LossPort&) = delete;
  LossPort& operator=(const LossPort&) = delete;

  /// Returns where this process receives; without a host if it has no network.
  [[nodiscard]] LossAddress address() const;
  void add(LossLink& link);
  void remove(LossLink& link);
  void send(const sockaddr_in& to, std::span<const std::byte> bytes) const noexcept;

 private:
  void run();
  void receive_all();
  void receive_refusals();
  [[nodiscard]] LossLink* link_of(std::span<const std::byte> bytes) const;

  int socket_ = -1;
  in_port_t port_ = 0;
  std::mutex mutex_;
  bool is_over_ = false;
  std::vector<LossLink*> links_;
  std::vector<std::byte> buffer_;
  std::unique_ptr<class LossThread> thread_;
};

/// The part of one mesh: its agreement, and who hears whom. Messages are datagrams, because MPI
/// says nothing about deaths and may be used by one thread only: a lost message is sent again, and
/// no send waits for a dead rank.
///
/// Thread safety: any thread may call any function.
class LossLink {
 public:
  /// Nanoseconds between two calls of advance() that have something to do.
  static constexpr std::int64_t tick = 10'000'000;

  struct LinkFacts {
    std::uint64_t key = 0;  ///< Of the mesh.
    std::uint32_t self = 0;
    std::vector<std::int32_t> node_of_rank{};
    std::vector<LossAddress> addresses{};
    double silence = 1;  ///< In seconds; a node that is not heard for so long is lost.
    /// In nanoseconds; a rank that others await for so long is lost. 0: never.
    std::int64_t exclude_after = 0;
  };
  /// @param stay  See LossAgreement.
  LossLink(std::shared_ptr<LossPort> port, std::shared_ptr<NodeBoard> board, LinkFacts facts,
           std::function<LossAgreement::Staying(const LossAgreement::Members&)> stay);
  ~LossLink();
  LossLink(const LossLink&) = delete;
  LossLink& operator=(const LossLink&) = delete;

  void see_death(std::uint32_t rank);
  /// This rank has waited too long for ranks of other nodes. The ranks of these nodes look whether
  /// they are late, because they see when these ranks have waited last.
  void doubt(const std::vector<std::uint32_t>& ranks);
  void come(LossAgreement::Attendance meeting);
  [[nodiscard]] bool have_all_come() const;
  [[nodiscard]] bool is_over() const;
  /// See LossWatch. Returns false if a spare rank is lost, or does not answer.
  [[nodiscard]] bool close();
  [[nodiscard]] bool has_closed() const;
  /// Returns how many losses are decided or due. A loss that is due after this rank has opened the
  /// next mesh does not count: it may belong to that mesh.
  [[nodiscard]] std::uint64_t rounds() const;

  struct LinkState {
    std::uint64_t rounds = 0;  ///< Decided.
    LossAgreement::Failure failure = LossAgreement::Failure::none;
    LossAgreement::Decision decision{};  ///< The last one.
  };
  /// Returns whether all losses that are due are decided. Never, if this rank cannot go on.
  [[nodiscard]] bool is_settled() const;
  /// Blocks until so many losses are decided, or until this rank cannot go on or need not.
  [[nodiscard]] LinkState wait_for(std::uint64_t rounds) const;

  /// Returns for how long a node may be silent, in seconds.
  [[nodiscard]] double silence() const { return facts_.silence; }

  // Called by the port.
  [[nodiscard]] std::uint64_t key() const { return facts_.key; }
  void receive(std::span<const std::byte> bytes, const sockaddr_in& source);
  /// The host of this address says that no process receives there.
  void refuse(const sockaddr_in& address);
  /// Returns whether something is under way, so that it must be called again soon.
  bool advance(std::int64_t now);

 private:
  struct Neighbour {
    std::int32_t node = 0;
    std::vector<std::uint32_t> ranks{};
  };

  [[nodiscard]] std::vector<LossAgreement::StepOfMember> freeze() const;
  [[nodiscard]] bool has_stopped() const;  // this rank cannot go on or need not
  [[nodiscard]] std::uint64_t decided() const;
  void find_neighbours();
  void hear_all(std::int64_t now);
  void say_hello();
  void accuse_silent(std::int64_t now);
  void mark_late(const LossAgreement::Members& doubted, std::int64_t now) const;
  void send(std::uint32_t to, const LossAgreement::LossMessage& message);
  void flush();

  const pid_t process_;
  std::shared_ptr<LossPort> port_;
  const std::shared_ptr<NodeBoard> board_;
  const LinkFacts facts_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  LossAgreement agreement_;
  struct LinkPeer {
    std::optional<sockaddr_in> address{};  // where it has sent from
    bool has_left = false;                 // the mesh, without a failure
  };
  std::vector<LinkPeer> peers_;              // of each rank
  std::vector<Neighbour> neighbours_;        // the nodes that watch each other
  std::size_t place_ = 0;                    // of this rank on its node
  std::size_t decisions_ = ~std::size_t{0};  // for which the neighbours were found
  std::size_t beat_ = 0;
  std::int64_t last_ = 0, next_tick_ = 0, next_hello_ = 0;
};

}  // namespace rankmesh::detail
