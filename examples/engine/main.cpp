// SPDX-License-Identifier: BSD-3-Clause
// The loop of an inference engine whose prefill and decode run on different ranks. A stream of
// requests arrives at the prefill replicas. They compute the prompts and hand the sequences over to
// the decode replicas, which generate the other tokens. Rank 0 compares all answers with those of
// one process.
//
//     mpirun -n 7 ./engine dp=1,tp=3 dp=2,tp=2
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine.hpp"

namespace {

constexpr int request_count = 20;

Request request(int id) {
  Request made{id, {}, 2 + id % 4};
  for (int i = 0; i < 3 + id % 5; ++i) made.prompt.push_back((7 * id + i) % 97);
  return made;
}

// The driver of replica k of a grid, as a member of the group of all ranks.
rankmesh::RankInGroup driver(const rankmesh::Mesh& mesh, const std::string& grid, std::int64_t k) {
  return mesh.plan().groups(grid + ".tp").group(k).front().value();
}

std::int64_t replicas(const rankmesh::Mesh& mesh, const std::string& grid) {
  return mesh.plan().groups(grid + ".dp").group_size();
}

// Hands a sequence over to a decode replica, with the cache of all ranks of this replica.
void hand_over(rankmesh::Mesh& mesh, Engine& engine, Sequence sequence) {
  auto cache = engine.tp.gather_v(sequence.cache, 0);
  if (!engine.is_driver()) return;
  sequence.cache = std::move(cache.values);
  const auto to = driver(mesh, "decode", sequence.id % replicas(mesh, "decode"));
  rankmesh::exchange::send_object(engine.world, sequence, to);
}

void prefill(rankmesh::Mesh& mesh, Engine& engine) {
  const auto mine = static_cast<int>(replicas(mesh, "prefill"));
  const auto width = static_cast<std::size_t>(engine.model.slice().size());
  int next = engine.replica();  // request r belongs to replica r % mine
  for (int now = 0;; ++now) {
    Plan<Request> plan;
    // A new request arrives in every second step.
    if (engine.is_driver() && next < request_count && now % 2 == 0) {
      plan.arrived.push_back(request(next));
      next += mine;
    }
    plan.is_last = next >= request_count;
    engine.share(plan);

    std::vector<Sequence> sequences;
    std::vector<Row> rows;
    for (const Request& r : plan.arrived)
      sequences.push_back({r.id, r.tokens, {}, std::vector<int>(width)});
    for (std::size_t s = 0; s < sequences.size(); ++s)
      for (const int token : plan.arrived[s].prompt) rows.push_back({&sequences[s], token});
    const auto sums = engine.step(rows, plan.is_last);
    if (!sums) return;
    for (std::size_t s = 0, row = 0; s < sequences.size(); ++s) {
      row += plan.arrived[s].prompt.size();
      sequences[s].text.push_back(next_token((*sums)[row - 1]));
      --sequences[s].remaining;
      hand_over(mesh, engine, std::move(sequences[s]));
    }
  }
}

// The sequences that have arrived at the driver of a decode replica. It does not wait for them.
std::vector<Sequence> arrived(rankmesh::Mesh& mesh, Engine& engine) {
  std::vector<Sequence> sequences;
  for (std::int64_t k = 0; k < replicas(mesh, "prefill"); ++k)
    while (auto sequence = rankmesh::exchange::try_recv_object<Sequence>(
               engine.world, driver(mesh, "prefill", k)))
      sequences.push_back(std::move(*sequence));
  return sequences;
}

// Generates one token of each sequence per step. Returns the sequences that have ended.
std::vector<Sequence> decode(rankmesh::Mesh& mesh, Engine& engine) {
  const auto all = static_cast<int>(replicas(mesh, "decode"));
  int expected = 0;  // request r belongs to replica r % all
  for (int r = engine.replica(); r < request_count; r += all) ++expected;
  std::vector<Sequence> running, ended;
  while (true) {
    Plan<Sequence> plan;
    if (engine.is_driver()) {
      plan.arrived = arrived(mesh, engine);
      expected -= static_cast<int>(plan.arrived.size());
      plan.is_last = expected == 0;
    }
    engine.share(plan);
    for (Sequence& sequence : plan.arrived) {  // each rank keeps its slice of the cache
      const auto& slice = engine.model.slice();
      sequence.cache = {sequence.cache.begin() + slice.begin(),
                        sequence.cache.begin() + slice.end()};
      running.push_back(std::move(sequence));
    }

    std::vector<Row> rows;
    bool is_done = plan.is_last;
    for (Sequence& sequence : running) {
      rows.push_back({&sequence, sequence.text.back()});
      is_done = is_done && sequence.remaining == 1;
    }
    const auto sums = engine.step(rows, is_done);
    if (!sums) return ended;
    for (std::size_t s = 0; s < running.size(); ++s) {
      running[s].text.push_back(next_token((*sums)[s]));
      --running[s].remaining;
    }
    std::vector<Sequence> others;
    for (Sequence& sequence : running)
      (sequence.remaining == 0 ? ended : others).push_back(std::move(sequence));
    running = std::move(others);
  }
}

// The mesh of both grids: prefill on the first ranks, decode on the ranks after them.
rankmesh::MeshSpec mesh_of(const std::string& prefill, const std::string& decode) {
  const std::int64_t first = rankmesh::MeshSpec::parse(prefill).plan().world_size();
  const std::int64_t all = first + rankmesh::MeshSpec::parse(decode).plan().world_size();
  const auto grid = [](const std::string& name, const std::string& mesh, std::int64_t begin,
                       std::int64_t end) {
    return "[grids." + name + "]\nmesh = \"" + mesh + "\"\nranks = \"" + std::to_string(begin) +
           "-" + std::to_string(end - 1) + "\"\n";
  };
  return rankmesh::MeshSpec::parse_toml("world_size = " + std::to_string(all) + "\n" +
                                            grid("prefill", prefill, 0, first) +
                                            grid("decode", decode, first, all),
                                        "engine");
}

// Rank 0: returns whether all requests were answered as one process answers them.
bool is_right(const std::vector<std::vector<Sequence>>& of_ranks) {
  std::map<int, std::vector<int>> answers;
  for (const auto& ended : of_ranks)
    for (const Sequence& sequence : ended) answers[sequence.id] = sequence.text;
  int right = 0;
  for (int id = 0; id < request_count; ++id)
    if (answers[id] == serial_answer(request(id))) ++right;
  std::printf("%d of %d answers are those of one process\n", right, request_count);
  return right == request_count;
}

int run(const std::string& prefill_mesh, const std::string& decode_mesh) {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, mesh_of(prefill_mesh, decode_mesh)};
  auto& world = mesh["world"];  // collective, because no family has this group
  const bool is_prefill = mesh.plan().groups("prefill.tp").find(mesh.rank()).has_value();
  const std::string grid = is_prefill ? "prefill" : "decode";
  Engine engine{mesh, grid};
  std::vector<Sequence> ended;
  if (is_prefill)
    prefill(mesh, engine);
  else
    ended = decode(mesh, engine);
  if (!engine.is_driver()) ended.clear();

  const auto all = rankmesh::exchange::gather_objects(world, ended, 0);
  if (engine.is_driver())
    std::printf("%s replica %d: %d steps, %d of them with dummies only\n", grid.c_str(),
                engine.replica(), engine.steps, engine.dummy_steps);
  const bool answers_are_right = mesh.rank() != 0 || is_right(all);
  mesh.close();
  return answers_are_right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] {
    return argc == 3 ? run(argv[1], argv[2]) : run("dp=2,tp=1", "dp=2,tp=2");
  });
}
