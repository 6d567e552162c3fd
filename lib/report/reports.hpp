// SPDX-License-Identifier: BSD-3-Clause
// The documents of meshinfo's commands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "place/check.hpp"
#include "place/count.hpp"
#include "place/diff.hpp"
#include "place/model.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/shrink.hpp"
#include "rankmesh/machine/machine.hpp"
#include "rankmesh/place/arrange.hpp"
#include "rankmesh/record/record.hpp"
#include "rankmesh/transfer/plan.hpp"
#include "rankmesh/transfer/relabel.hpp"
#include "record/diagnosis.hpp"
#include "report/document.hpp"
#include "report/live_facts.hpp"

namespace rankmesh::report {

/// Reports the mesh, with the schema `rankmesh.show/1`. The text has fewer than 50 lines,
/// regardless of the size of the mesh. The table has a row for each family. The cost is O(names x
/// dimensions), or O(names x ranks) with live facts.
/// @param live  the facts of the running job, or null. With these facts, the grid and the table
/// show the nodes, and JSON has an entry for each rank.
/// @param width the width of the terminal, in columns. If the grid is wider, its remaining columns
/// are printed below it, unless the text would then have 50 lines or more.
/// @param machine the machine on which the mesh lies, or null. If it is given, the table says for
/// each level how many groups lie inside one unit, over how many units a group is spread at most,
/// and which groups are split. This costs as much as spread_of() for each name.
/// @throws UsageError if a rank has no slot on the machine.
Document show(const MeshPlan& plan, const LiveFacts* live, std::size_t width = SIZE_MAX,
              const Machine* machine = nullptr);

/// Returns the views of the plan as a mesh string, for example `pp=2,dp=4,tp=8 | pp=2,ep=32`.
std::string views_text(const MeshPlan& plan);

/// Returns the views of the plan and the number of its ranks, for the first line of a report.
/// @param most  the greatest number of characters of the views; longer ones are cut.
std::string title_of(const MeshPlan& plan, std::size_t most = SIZE_MAX);

/// Reports one rank, with the schema `rankmesh.rank/1`. In JSON, a family is omitted if none of its
/// groups contains the rank. If several groups of a family contain the rank, the value of the
/// family is an array. The table has a row for each group of the rank.
/// @param live  the facts of the running job, or null. With these facts, the report also contains
/// the host, the local rank and the process ID of the rank. CSV has additional columns for these
/// three values.
/// @throws UsageError if the rank is outside the world, or has no slot on the machine.
/// @param machine  the machine on which the mesh lies, or null. With it, the report also contains
/// the host, the slot, the GPU and its nearest network interface, and for each group the number of
/// units that it touches.
Document rank(const MeshPlan& plan, Rank rank, const LiveFacts* live,
              const Machine* machine = nullptr);

/// Reports several ranks, with the schema `rankmesh.ranks/1`. The JSON field `ranks` lists the
/// fields of rank() for each of them. The table has the rows of all ranks.
/// @param live, machine  as for rank().
/// @throws UsageError if a rank is outside the world, or has no slot on the machine.
Document ranks(const MeshPlan& plan, const std::vector<Rank>& ranks, const LiveFacts* live,
               const Machine* machine = nullptr);

/// Describes all groups of a name, with the schema `rankmesh.family/1`: how they cover the world,
/// their communicators and their options. The table has a row for each of the first 65,536 groups;
/// the text has the first 32 of them, and JSON has none.
/// @param name  a name of the plan, or a product of dimensions such as `dp*tp`.
/// @param live  the facts of the running job, or null. With these facts, the rows have the nodes.
/// @throws UnknownName if the plan has no such groups.
Document describe_family(const MeshPlan& plan, std::string_view name, const LiveFacts* live);

/// Describes one group, with the schema `rankmesh.group/1`: the coordinates that its members share,
/// the communicator that it uses, and its neighbours in listing order. The table has a row for each
/// member, of which the text has the first 32.
/// @param group  the number of the group in listing order.
/// @throws UnknownName if the plan has no such name; UsageError if it has no group of this number,
/// or if the group has more than 1,048,576 ranks.
Document describe_group(const MeshPlan& plan, std::string_view name, std::int64_t group,
                        const LiveFacts* live);

/// Reports the groups of the families in listing order, with the schema `rankmesh.groups/1`. The
/// groups are computed while they are written. Whatever the size of the mesh, at most 64 KiB of
/// output are held in memory.
/// @param live  the facts of the running job, or null. With these facts, the long CSV form has the
/// host, the node, the local rank and the process of each rank, and its device if it has one.
Document groups(const MeshPlan& plan, std::vector<NamedFamily> families,
                const LiveFacts* live = nullptr);

/// Reports, for every group of the families and for each level, over how many units the group is
/// spread. The schema is `rankmesh.group_places/1`. Takes O(ranks x families) time and memory.
/// @throws UsageError if a rank has no slot on the machine.
Document group_places(const MeshPlan& plan, const std::vector<NamedFamily>& families,
                      const Machine& machine);

/// Reports the counts of a plan, with the schema `rankmesh.count/1`. In JSON, a figure per rank is
/// an object with the fields `least` and `most`. If the figure is the value of rank 0 only, the
/// object also has the field `"rank": 0`. The table prints such a figure as `least-most`, or as one
/// number if both values are equal.
/// @param machine  a machine with a slot for each rank, or null. With a machine, the report says
/// how many of the groups lie inside one unit of each level (in JSON: `machine` and
/// `groups_inside`).
/// @throws UsageError if a rank has no slot.
Document count(const MeshPlan& plan, const PlanCounts& counts, const Machine* machine = nullptr);

/// Reports the differences, with the schema `rankmesh.diff/1`. The text is empty if there are no
/// differences. The table has a row for each family that differs. JSON contains every family. In
/// JSON, a figure that was not counted is null.
/// @param plan_a, plan_b  the meshes, for the places of their groups and for the picture.
/// @param a, b  the texts that describe the two meshes in the report.
/// @param machine  a machine with a slot for each rank of both meshes, or null. With a machine, the
/// report says how many groups of each family that differs lie inside one unit of each level, in A
/// and in B. JSON has the keys of show(): `machine`, and `place_a` and `place_b` for each family.
/// @throws UsageError if a rank has no slot.
Document diff(const PlanDiff& difference, const MeshPlan& plan_a, const MeshPlan& plan_b,
              const std::string& a, const std::string& b, const Machine* machine = nullptr);

/// Explains the coordinates of a rank, and then each group of the rank. For each view, the report
/// shows the divisions and remainders from which the coordinates follow.
///
/// The schema is `rankmesh.explain_rank/1`. JSON contains the divisions of each view. For each
/// family, JSON contains the first rank and the step of the group, and the index of the rank in the
/// group. Lists of ranks are cut after 1000 characters; the report rank() has the complete lists.
/// The table contains the divisions. The cost is O(names x dimensions).
/// @throws UsageError if the rank is outside the world.
Document explain_rank(const MeshPlan& plan, Rank rank);

/// Explains the order of the ranks: which dimension varies fastest, what the strides are, and which
/// ranks are neighbours. The schema is `rankmesh.explain_order/1`. JSON contains the dimensions of
/// each view, beginning with the dimension that varies fastest. The cost is O(dimensions).
Document explain_order(const MeshPlan& plan);

/// Reports the rules, numbered in the order in which they are tried. For every family, the report
/// then shows which operations, types and sizes use the same transport. Without live facts, the
/// nodes of a group are not known, so the report lists every transport that the group may use. The
/// schema is `rankmesh.routes/1`. The cost is O(names x rules). With live facts, the report costs
/// an additional O(names x ranks).
/// @param live  the facts of the running job, or null.
Document routes(const MeshPlan& plan, const RouteTable& table, const RouteFacts* live);

/// Reports the findings, with the schema `rankmesh.check/1`.
/// @param silenced  the ids of the rules that were not applied.
Document check(const MeshPlan& plan, const Machine& machine,
               const std::vector<PlacementFinding>& findings,
               const std::vector<std::string>& silenced);

/// Reports what one rank sends per family in one step, with the formula and its source. The schema
/// is `rankmesh.estimate/1`.
/// @param machine the machine, or null. If it is given, the table also has the bytes that leave the
/// units of each level, summed over all ranks.
Document estimate(const MeshPlan& plan, const ModelFigures& model,
                  std::span<const FamilyVolume> volumes, const Machine* machine);

/// Reports the bytes per level of the best arrangement, of the runner-up and of today's
/// arrangement, and the lower bound. The schema is `rankmesh.plan/1`. JSON also has the slot of
/// each rank.
/// @param unit the unit of the traffic: `bytes`, or `relative` if the traffic is only relative.
Document plan(const MeshPlan& plan, const Machine& machine, std::span<const FamilyTraffic> traffic,
              std::string_view unit, const Arrangements& found);

/// Reports the loss, with the schema `rankmesh.shrink/1`. The table has a row for each rank of the
/// old mesh and each spare rank.
/// @param after  the result of rankmesh::shrink() for this plan and policy.
/// @param machine the machine that the picture shows, or null.
Document shrink(const MeshPlan& plan, ShrinkPolicy policy, const Shrunk& after,
                const Machine* machine = nullptr);

/// Reports how many bytes a transfer moves, the lower bounds, and which pairs of ranks carry most.
/// The table has all pairs of ranks. The schema is `rankmesh.transfer/1`.
/// @param plan  a plan with at least one tensor.
/// @param machine  the machine, or null. If it is given, the table also has the nodes of the ranks.
/// @param relabelling  how the ranks of the places `to` were chosen, or null.
Document transfer(const TransferPlan& plan, const Machine* machine,
                  const Relabelling* relabelling = nullptr);

/// Reports the state of each rank, and then the diagnosis in sentences. The schema is
/// `rankmesh.trace/1`.
///
/// The records may belong to several meshes. Each mesh has a section of the text, and an object in
/// the JSON field `meshes`. The table for CSV contains the ranks of all meshes, without the
/// findings. In the text, ranks of a mesh of more than 16 ranks share a line if they do the same,
/// and each mesh takes at most 100 lines. This costs as much as record::diagnose().
Document trace(std::vector<record::Record> records);

/// Reports meshes whose diagnoses are already known, in the same way.
Document trace(const std::vector<std::vector<record::Record>>& meshes,
               const std::vector<record::Diagnosis>& diagnoses);

/// Reports what a job did between two readings of its records, with the schema `rankmesh.follow/1`.
/// The table has a row for each family: the calls and bytes per second of all its ranks together,
/// the share of time that a rank waited, and the rank that was last most often, with its host. The
/// families in which the ranks waited most come first. Below the table, the report lists the ranks
/// that have been in a call for the longest time.
///
/// record::activity_between() says which of these figures are exact. A figure that assumes
/// something about lost calls has a `~` in the text and `extrapolated` in JSON.
/// @param before      the earlier reading.
/// @param now         the later reading.
/// @param most_lines  the height of the screen. JSON and CSV have all families.
Document follow(std::span<const record::Record> before, std::span<const record::Record> now,
                std::size_t most_lines = 24);

}  // namespace rankmesh::report
