// SPDX-License-Identifier: BSD-3-Clause
// Opens the groups of a mesh plan on an MPI communicator.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/symmetric_span.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mesh/near_misses.hpp"
#include "rankmesh/mesh/options.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "rankmesh/transport/blocks.hpp"

namespace rankmesh {

namespace detail {
struct MeshRuntime;
struct MeshState;
}  // namespace detail

/// Whether NCCL calls on a communicator of the program block (see Mesh::adopt()).
enum class NcclCalls : std::uint8_t {
  block,           ///< They return when NCCL has carried them out. This is the default of NCCL.
  return_at_once,  ///< The communicator was created with `blocking = 0`.
};

/// Opens a mesh on an MPI communicator. A mesh has families of groups: one for each dimension,
/// product of dimensions or list of groups. The Mesh object holds one coordinator for each family
/// that has a group with this rank. The communicator still belongs to the program. Several
/// meshes can be opened on it. docs/design.md ("Costs") says
/// what the construction costs.
///
/// An open mesh communicates only on communicators that it creates itself. While a mesh is being
/// opened, ranks that wait long for other ranks exchange messages with the tags 32765 to 32767 on
/// the program's communicator, so the program must not use these tags there. The constructor
/// receives all of these messages before it returns. If it throws, some of them may remain
/// unreceived.
///
/// Thread safety: only one thread at a time may call the mesh; a call from a second thread throws
/// UsageError. Move-only.
class RANKMESH_API Mesh : public MeshNearMisses {
 public:
  /// Opens a mesh. Collective over `world`; blocks until all ranks take part. Ranks of the mesh
  /// have the same numbers as in `world`, unless MeshOptions::reorder is set.
  /// @param world  Any intracommunicator.
  /// @param mesh   A mesh string, or a path that ends in `.toml` or `.json`. It must be the same on
  ///               every rank.
  /// @throws SpecError if the description of the mesh is invalid in the same way on all ranks.
  /// @throws MismatchError if the ranks have different descriptions, options or libraries, or if a
  /// rank fails. The text is the same on every rank.
  /// @throws TimeoutError if some ranks do not take part. The error names the missing ranks.
  /// @throws UsageError if `world` is null or an intercommunicator, or if MPI is not active.
  /// @throws mpi::MpiError if MPI cannot create a communicator, for example because this process
  /// has as many as MPI allows.
  ///
  /// After an exception, no communicator of the mesh remains open.
  Mesh(MPI_Comm world, std::string_view mesh, MeshOptions options = {});
  /// Opens a mesh from a description that the program has already parsed. The rules of the
  /// constructor above apply.
  Mesh(MPI_Comm world, const MeshSpec& mesh, MeshOptions options = {});
  Mesh(std::string_view mesh, MeshOptions options = {}) = delete;  // Mesh{MPI_COMM_WORLD, "tp=8"}
  Mesh(std::string_view, MPI_Comm, MeshOptions = {}) = delete;     // Mesh{MPI_COMM_WORLD, "tp=8"}
  /// Opens the mesh that the environment variable `RANKMESH` describes. See the constructor for the
  /// rules.
  static Mesh from_environment(MPI_Comm world, MeshOptions options = {});
  /// Destroys the mesh without communication. If close() was not called, the communicators remain
  /// until MPI_Finalize.
  ~Mesh();
  /// Takes over the mesh. The source can then only be destroyed or assigned to.
  Mesh(Mesh&&) noexcept;
  /// Takes over the mesh. The source can then only be destroyed or assigned to.
  Mesh& operator=(Mesh&&) noexcept;

  /// Returns the coordinator of this rank's group in a family. Local. The reference is valid until
  /// the mesh is destroyed.
  ///
  /// The name `world` stands for the group of all ranks, and `GRID.world` for the group of all
  /// ranks of a grid, unless the mesh has a family of this name. If no family has a group of these
  /// ranks in this order, the first use of such a name creates the group, as new_group() does.
  /// Therefore this first use is collective over these ranks, and blocks.
  /// @throws UnknownName if no family has this name. The hint lists the names of the families.
  /// @throws NotMember if no group of the family contains this rank, or if the groups of the family
  /// overlap. Overlapping groups have no coordinators.
  GroupCoordinator& operator[](std::string_view name);
  /// Returns whether `mesh[name]` gives this rank a group. It does not if no family has this name,
  /// if no group of the family contains this rank, or if the groups of the family overlap. Local;
  /// creates no group.
  [[nodiscard]] bool has(std::string_view name) const;
  GroupCoordinator& operator[](std::nullptr_t) = delete;  // mesh[0] would read the name at null

  /// Returns the coordinator of a duplicate of this rank's group in a family. A duplicate has its
  /// own communicator, so its operations can run at the same time as the operations of the original
  /// group. Local.
  /// @param name  The name of the family.
  /// @param key   A key in GroupOptions::duplicates of the family. The constructor creates the
  ///              duplicates.
  /// @throws UnknownName if the family or the key is unknown; NotMember if no group of the family
  /// contains this rank.
  GroupCoordinator& duplicate(std::string_view name, std::string_view key);

  /// Returns the plan of the mesh. The plan says which ranks are in which group, and answers
  /// without communication.
  [[nodiscard]] const MeshPlan& plan() const;
  /// Returns this rank's number in the mesh.
  [[nodiscard]] Rank rank() const;
  /// Returns the number of ranks in the mesh, without spare ones.
  [[nodiscard]] std::int64_t size() const;
  /// Returns whether this rank is spare: it has a number behind those of the mesh, no groups, and
  /// only next() to call. A mesh has spare ranks if `survive` has the policy ShrinkPolicy::spare.
  [[nodiscard]] bool is_spare() const;
  /// Returns this rank's coordinate along a dimension.
  [[nodiscard]] Coordinate coordinate(std::string_view dimension) const;
  /// Returns the number of the CUDA device that this rank uses, or nullopt if the mesh has no
  /// devices.
  [[nodiscard]] std::optional<int> device() const;
  /// Returns the reason why the mesh has no devices. The text is empty if the mesh has devices.
  [[nodiscard]] const std::string& why_no_device() const;
  /// Returns the reason why the ranks of this rank's node share no memory; groups inside the node
  /// then use MPI. The text is empty if they share memory, or if no other rank is on the node.
  [[nodiscard]] std::string why_no_shared_memory() const;
  /// Returns the node of every rank. The constructor discovers the nodes once.
  [[nodiscard]] const Placement& placement() const;

  /// Opens the NCCL communicators of families that have the option GroupOptions::lazy. Leaves
  /// communicators that are already open as they are. Does nothing if the mesh has no devices.
  ///
  /// Collective over all ranks that are in a group of these families. If a family is split from a
  /// parent, open() is collective also over all ranks that are in a group of the parent. Blocks,
  /// and waits until the device is idle, because NCCL cannot create a communicator while another
  /// communicator is in use.
  /// @param names  The names of the families. They must be the same on every rank.
  /// @throws UnknownName if one of the names is not the name of a family.
  /// @throws MismatchError if the ranks pass different names, or if a rank fails. A call that
  /// throws MismatchError opens no communicator.
  /// @throws TimeoutError if some ranks do not take part. The error names the missing ranks.
  void open(std::span<const std::string_view> names);
  /// Does the same for a list of names in braces.
  void open(std::initializer_list<std::string_view> names) {
    open(std::span{names.begin(), names.size()});
  }

  /// Makes progress on all asynchronous operations in flight on host memory. Local; never blocks.
  void progress();

  /// Adds a text to the record of this rank's calls, for example the number of the training step.
  /// `meshinfo trace` shows it between the calls. Local; does nothing if RANKMESH_RECORD is off.
  /// @param text  Bytes after the first 32 are cut off.
  void mark(std::string_view text);

  /// Allocates symmetric host memory. Each rank gets `count` zeroed elements in a segment that all
  /// ranks of the node have mapped. Members of a group can then read each other's buffers directly,
  /// without an intermediate copy. Collective over the mesh; blocks.
  ///
  /// An operation uses the memory directly under three conditions. Otherwise the operation treats
  /// the span as ordinary host memory. The conditions are:
  /// - The group belongs to one of the families in `names`.
  /// - All members of the group are on the same node.
  /// - All members pass a SymmetricSpan as the output of broadcast or all_gather, as the input of
  ///   reduce_scatter or all_to_all, or as both buffers of all_reduce.
  ///
  /// The mesh owns the memory. close() frees the memory, and later operations on it throw
  /// ClosedError. Cost: one agreement, and one segment per node (see SharedSegment). The system
  /// allocates each page when a process first writes to it.
  /// @param count  The number of elements per rank. It must be the same on every rank.
  /// @param names  The names of the families that use the memory. They must be the same on every
  ///               rank.
  /// @throws UnknownName if one of the names is not the name of a family.
  /// @throws MismatchError if the ranks pass different counts or names, or if a rank fails.
  /// @throws SharedMemoryError if a node has no memory left. The text is the same on every rank.
  /// @throws TimeoutError if some ranks do not take part. The error names the missing ranks.
  template <Element T, MemoryKind Kind = MemoryKind::host>
    requires(Kind == MemoryKind::host)
  [[nodiscard]] SymmetricSpan<T> allocate_symmetric(std::size_t count,
                                                    std::span<const std::string_view> names) {
    auto window = allocate_window(count, sizeof(T), names);
    T* const data = reinterpret_cast<T*>(window->own());
    return {std::move(window), data, count};
  }

  /// Allocates symmetric device memory. Each rank gets `count` zeroed elements that are registered
  /// with NCCL. Collective over the mesh; blocks, and waits until the device is idle.
  ///
  /// The memory comes from NCCL's allocator (NCCL 2.19 or later). It is registered with the
  /// communicators of the families in the order of the plan. A registration is a symmetric window
  /// (NCCL 2.27 or later) or a user buffer (2.19 or later); the log says which. If NCCL supports
  /// neither, the memory is ordinary device memory. Operations accept the span like any other span,
  /// because NCCL finds the registration by the address. If one member of a group passes registered
  /// memory to an operation, all members must pass registered memory at the same offset.
  ///
  /// The mesh owns the memory. close() frees the memory, and the span is invalid afterwards.
  /// @param count  The number of elements per rank. It must be the same on every rank.
  /// @param names  The names of the families that use the memory. They must be the same on every
  ///               rank.
  /// @throws UnknownName if one of the names is not the name of a family. Only the rank that
  /// passes the unknown name throws UnknownName; the other ranks time out.
  /// @throws NoDeviceError if the mesh has no devices.
  /// @throws MismatchError if the ranks pass different counts or names, if a rank has no memory
  /// left, or if the communicators of a family are not open yet (`lazy`).
  /// @throws TimeoutError if some ranks do not take part. The error names the missing ranks.
  ///
  /// If a registration fails, the groups of these families are broken afterwards.
  template <Element T, MemoryKind Kind>
    requires(Kind == MemoryKind::device)
  [[nodiscard]] DeviceSpan<T> allocate_symmetric(std::size_t count,
                                                 std::span<const std::string_view> names) {
    return {reinterpret_cast<T*>(allocate_on_device(count, sizeof(T), names)), count};
  }
  /// Does the same for a list of names in braces.
  template <Element T, MemoryKind Kind = MemoryKind::host>
  [[nodiscard]] auto allocate_symmetric(std::size_t count,
                                        std::initializer_list<std::string_view> names) {
    return allocate_symmetric<T, Kind>(count, std::span{names.begin(), names.size()});
  }

  /// Creates a dynamic group of the given ranks, in the given order. Collective over these ranks
  /// only; blocks until all of these ranks take part. Ranks that have several dynamic groups in
  /// common must create these groups in the same global order. The group stays open until the
  /// program closes the group or the mesh.
  ///
  /// Cost for k members: k-1 messages of 320 bytes to the first member and as many from it, and one
  /// MPI_Comm_create_group. A member that waits for more than 20 ms sends k-1 messages more.
  /// @param ranks  A list of ranks of the mesh. It must be the same on every member.
  /// @param name   A name for the group, for use in messages, the same on every member. If `name`
  ///               is empty, the group is called `group(<ranks>)`.
  /// @throws UsageError if the list does not contain this rank, or if it contains a rank outside
  /// the mesh.
  /// @throws MismatchError if members pass different lists or names, or create their common groups
  /// in different orders.
  /// @throws TimeoutError if some members do not take part. The error names the missing members.
  /// @throws mpi::MpiError if MPI cannot create the communicator, for example because there are too
  /// many in this process.
  std::shared_ptr<GroupCoordinator> new_group(std::span<const Rank> ranks, std::string name = {});
  /// Does the same for a list of ranks in braces.
  std::shared_ptr<GroupCoordinator> new_group(std::initializer_list<Rank> ranks,
                                              std::string name = {}) {
    return new_group(std::span{ranks.begin(), ranks.size()}, std::move(name));
  }
  /// Creates a dynamic group of ranks that are given as integers of any type.
  template <detail::Integers Ranks>
  std::shared_ptr<GroupCoordinator> new_group(const Ranks& ranks, std::string name = {}) {
    const std::vector<Rank> copy(std::ranges::begin(ranks), std::ranges::end(ranks));
    return new_group(std::span{copy}, std::move(name));
  }
  /// Refuses ranks that are not in a list, at compile time.
  template <std::integral... Ranks>
  RANKMESH_REFUSE("the ranks are a list: write new_group({0, 1})")
  std::shared_ptr<GroupCoordinator> new_group(Ranks...) {
    return nullptr;
  }
  /// Refuses what is no list of ranks, at compile time.
  RANKMESH_REFUSE("the ranks are a list: write new_group({0, 1}), or pass a std::vector<int>")
  std::shared_ptr<GroupCoordinator> new_group(const detail::NoRanks&, const std::string& = {}) {
    return nullptr;
  }
  /// Creates several dynamic groups. Every rank creates its groups in a canonical order that does
  /// not depend on the order of the lists, so overlapping groups cannot deadlock. Collective over
  /// each group; blocks.
  /// @return One element per list. The element is null if the list does not contain this rank.
  std::vector<std::shared_ptr<GroupCoordinator>> new_groups(
      std::span<const std::vector<Rank>> groups);
  /// Does the same for a list of groups in braces.
  std::vector<std::shared_ptr<GroupCoordinator>> new_groups(
      std::initializer_list<std::vector<Rank>> groups) {
    return new_groups(std::span{groups.begin(), groups.size()});
  }
  /// Does the same for lists of integers of any type.
  template <std::ranges::forward_range Lists>
    requires detail::Integers<std::ranges::range_value_t<Lists>>
  std::vector<std::shared_ptr<GroupCoordinator>> new_groups(const Lists& groups) {
    std::vector<std::vector<Rank>> copy;
    for (const auto& ranks : groups)
      copy.emplace_back(std::ranges::begin(ranks), std::ranges::end(ranks));
    return new_groups(std::span<const std::vector<Rank>>{copy});
  }
  /// Closes a dynamic or adopted group. Collective over the members of the group. Waits for all
  /// members, at most for the mesh's timeout. The close of an adopted group is local: it waits for
  /// this rank's operations, and not for the other members.
  /// @throws UsageError if the group belongs to a family or to another mesh, or if a CUDA graph
  /// still contains operations of the group; ClosedError if the group is already closed.
  /// @throws TimeoutError if some members do not take part. The error names the missing members.
  /// @throws MismatchError if a member has not received all messages that were sent to it. The
  /// group is closed then; its communicator stays until MPI_Finalize.
  void close(GroupCoordinator& group);
  /// Closes the group that new_group() or adopt() has returned.
  /// @throws UsageError also if the pointer is null, as new_groups() returns it for a group without
  /// this rank.
  void close(const std::shared_ptr<GroupCoordinator>& group);

  /// Creates a coordinator for communicators that belong to the program. Local. The mesh does not
  /// free these communicators. They must exist until the group or the mesh is closed.
  /// @param comm  A communicator that contains only ranks of the mesh.
  /// @param name  A name for the group. All members must pass the same name: their errors contain
  ///              it, and with MeshOptions::check it is part of what identifies their messages.
  /// @param nccl  An ncclComm_t for operations on device memory, or null. It must have the same
  ///              ranks in the same order as `comm`, and must use the device of the mesh.
  /// @param calls Whether NCCL calls on `nccl` block. NCCL has no function that returns this mode.
  /// @throws UsageError if the communicators do not match the mesh or each other.
  /// @throws NoDeviceError if `nccl` is given, but the mesh has no devices.
  std::shared_ptr<GroupCoordinator> adopt(MPI_Comm comm, std::string name, ncclComm* nccl = nullptr,
                                          NcclCalls calls = NcclCalls::block);

  /// Closes the mesh. Waits for all ranks, at most for the timeout, and then frees all
  /// communicators in the same order on every rank. Collective over the world. Call close() before
  /// MPI_Finalize. A second call does nothing.
  /// @throws MismatchError if a CUDA graph of any rank still contains operations of the mesh, or if
  /// an operation in flight of any rank fails. The text is the same on every rank. The mesh then
  /// stays open (is_closed()); destroy the graphs and call close() again.
  /// @throws MismatchError also if a member has not received all messages that were sent to it. The
  /// mesh is closed then; its communicators stay until MPI_Finalize, because MPI would give the
  /// messages to the communicators that it creates next. So do those of groups that are broken.
  /// @throws TimeoutError if some ranks do not take part. The error names the missing ranks. The
  /// mesh is closed then, and its NCCL communicators are aborted.
  /// @throws LostRanks if ranks were lost before all ranks had come. The mesh stays as it is.
  void close();
  /// Returns whether close() has closed the mesh.
  [[nodiscard]] bool is_closed() const;

  /// Publishes that this rank has completed a step, and waits until all ranks have. If ranks are
  /// lost, all survivors go on from the same step: the last one that all of them have passed to
  /// this function (LostRanks::step()). A rank must be able to return to the step that it commits,
  /// and until this function returns also to the step before. Collective over the mesh; blocks.
  /// Inside a node it needs no message.
  /// @param step  At least 0, and more than in the last call, unless all ranks have gone back to an
  ///              earlier step, such as that of a checkpoint. The same on every rank.
  /// @throws UsageError if the mesh has no option `survive`, or if the step is negative.
  /// @return whether a rank has called request_stop(). The result is the same on every rank.
  /// @throws LostRanks if ranks are lost. The step may then be committed or not: see
  /// LostRanks::step().
  /// @throws MismatchError if ranks commit different steps at once. Further commits then throw a
  /// UsageError, because nobody knows what all ranks have completed.
  /// @throws TimeoutError if some ranks do not commit within MeshOptions::timeout.
  bool commit(std::int64_t step);
  /// Asks all ranks to stop: from the next commit() of this rank on, commit() returns true on every
  /// rank, also in the meshes that next() opens. If this rank is lost before, nobody learns of it.
  /// If it has no place in the next mesh, it says it in next() to those ranks of its node that
  /// have. A signal handler or any thread may call this function.
  static void request_stop() noexcept;
  /// Returns the step that this rank has committed last, in this mesh or in those before it;
  /// nothing if there is none. A mesh that next() has returned begins with LostRanks::step().
  /// Local.
  /// @throws UsageError if the mesh has no option `survive`.
  [[nodiscard]] std::optional<std::int64_t> step() const;
  /// Opens the mesh of the survivors after a call has thrown LostRanks, with the plan of shrink()
  /// and the options of this mesh. Collective over the survivors; blocks until all of them come.
  /// Ranks that have no place in the next mesh do not wait.
  ///
  /// A spare rank calls it at once. It waits there, without a time limit, until it takes the place
  /// of a lost rank or the others have closed the mesh. If it stays spare after a loss, it waits
  /// on. It calls nothing of MPI meanwhile.
  ///
  /// Afterwards this mesh is closed, without communication. Its communicators are not freed, and
  /// MPI may still use the memory of its operations, so the process should not finalise MPI; the
  /// destructor of an Environment does not.
  /// @return the mesh; nothing if this rank has no place in it, or is spare and not needed any
  /// more.
  /// @throws LostRanks if more ranks are lost meanwhile. This mesh is as it was before; call next()
  /// again.
  /// @throws Error if no mesh remains: no replica is complete, or too few spare ranks or only spare
  /// ones are left. The text names the ranks that were lost so far.
  /// @throws UsageError if the mesh has no option `survive`, or has lost no rank.
  /// @throws TimeoutError if survivors do not come. The error names them.
  [[nodiscard]] std::optional<Mesh> next();

  /// Aborts all NCCL communicators in one call, without waiting for other ranks. All groups of the
  /// mesh are broken afterwards, even for operations on host memory. Local. Call abort() on a rank
  /// that has detected a failure. NCCL tells ranks on other nodes (not in 2.26 and 2.27), but
  /// nobody on the same node: the option `device_deadline` ends the operations of these ranks.
  void abort();

 private:
  friend class NcclGroup;
  explicit Mesh(std::unique_ptr<detail::MeshState> state);
  std::shared_ptr<const SymmetricWindow> allocate_window(std::size_t count,
                                                         std::size_t size_of_element,
                                                         std::span<const std::string_view> names);
  std::byte* allocate_on_device(std::size_t count, std::size_t size_of_element,
                                std::span<const std::string_view> names);
  GroupCoordinator* implied_world(std::string_view name);
  [[nodiscard]] std::optional<RankSet> ranks_of_world(std::string_view name) const;
  [[nodiscard]] detail::MeshState& state() const;  // throws ClosedError if moved from
  [[nodiscard]] detail::MeshState& open_state(const char* activity,  // or if closed, or spare
                                              bool is_for_spares = false) const;
  std::unique_ptr<detail::MeshState> state_;
};

}  // namespace rankmesh
