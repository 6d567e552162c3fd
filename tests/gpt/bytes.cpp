// SPDX-License-Identifier: BSD-3-Clause
// bytes TEXT: what the ranks of examples/gpt send in a step, by their records, equals what
// `meshinfo estimate` computes from the figures of the model. Six ranks.
//
// The formulas count the layers. So the stage in the middle of a pipeline is compared, which has
// neither the embedding nor the loss, and single numbers (the loss) are left out.
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>

#include <rankmesh/place/model.hpp>
#include <rankmesh/record/find.hpp>

#include "training.hpp"

namespace {

// The bytes that this rank sends in the ring algorithms of the collectives, and in messages.
struct Sent {
  std::int64_t collectives = 0;
  std::map<std::int64_t, std::int64_t> messages{};  // by the receiver
};

rankmesh::record::Record record_of(const Mesh& mesh) {
  const auto sources = rankmesh::record::sources_of_process(getpid());
  for (auto& record : rankmesh::record::read_all(sources).records)
    if (record.rank == mesh.rank()) return record;
  throw rankmesh::UsageError{"this rank has no record", "run the test without RANKMESH_RECORD=off"};
}

std::map<std::string, Sent> sent_in_step(const Mesh& mesh, Trainer& trainer) {
  trainer.step();  // in the first step, buckets also compare what they contain
  const auto before = record_of(mesh).calls_made;
  trainer.step();
  const auto record = record_of(mesh);
  std::map<std::string, Sent> sent;
  for (const auto& call : record.calls) {
    const auto& what = call.descriptor;
    const auto& group = record.groups[call.group];
    if (call.sequence <= before || what.count <= 1) continue;
    const std::int64_t bytes = what.count * std::int64_t{sizeof(Real)}, others = group.size - 1;
    Sent& of = sent[group.names[what.family()]];
    using enum rankmesh::Operation;
    if (what.operation() == all_gather || what.operation() == reduce_scatter)
      of.collectives += others * bytes;
    else if (what.operation() == all_reduce)
      of.collectives += 2 * others * bytes / group.size;
    else if (what.operation() == send || what.operation() == send_recv)
      of.messages[static_cast<std::int64_t>(what.peer())] += bytes;
  }
  return sent;
}

int failures = 0;

void compare(const Mesh& mesh, const std::string& layout, const char* name, std::int64_t sent,
             std::int64_t estimated) {
  if (sent != estimated) ++failures;
  if (sent != estimated || mesh.rank() == mesh.size() / 2)
    std::printf("%-10s rank %d  %-14s %8ld bytes, estimated %8ld%s\n", layout.c_str(),
                static_cast<int>(mesh.rank().value()), name, static_cast<long>(sent),
                static_cast<long>(estimated), sent == estimated ? "" : "  FAILED");
}

void compare_step(const std::string& layout, Config config, const std::string& text) {
  Mesh mesh{MPI_COMM_WORLD, complete(layout)};
  {
    Groups groups{mesh};
    Trainer trainer{config, groups, text};
    auto sent = sent_in_step(mesh, trainer);
    rankmesh::ModelFigures model;
    model.layers = config.layers;
    model.hidden = model.kv_hidden = config.width;
    model.parameters = trainer.model().size();
    model.sequence = config.context;
    model.microbatches = Share{config, groups}.microbatches;
    model.virtual_stages = config.chunks;
    model.activation_bytes = model.gradient_bytes = sizeof(Real);
    model.optimizer = rankmesh::OptimizerSharing::replicated;
    const bool is_in_the_middle = groups.pp.size() > 2 && groups.embd == nullptr;
    for (const auto& volume : rankmesh::estimate(mesh.plan(), model)) {
      const std::string& name = volume.traffic.name;
      const std::int64_t bytes = volume.traffic.bytes;
      if (name == "dp") {  // its ranks have the same parameters
        compare(mesh, layout, "data", sent["data"].collectives + sent["data_tp"].collectives,
                bytes);
      } else if (is_in_the_middle && name == "tp") {
        compare(mesh, layout, "tp", sent["tp"].collectives, bytes);
      } else if (is_in_the_middle) {  // pp: in each direction; cp: to the next member
        for (const auto& [to, in_messages] : sent[name].messages)
          compare(mesh, layout, (name + " to " + std::to_string(to)).c_str(), in_messages, bytes);
        if (sent[name].messages.size() != (name == "pp" ? 2U : 1U)) ++failures;
      }
    }
  }
  mesh.close();
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] {
    if (argc != 2) return 2;
    Config config{.layers = 6, .width = 12, .context = 12, .batch = 6};
    compare_step("pp=3,tp=2", config, argv[1]);
    compare_step("pp=3,cp=2", config, argv[1]);
    compare_step("dp=6", config, argv[1]);
    config.chunks = 2;
    compare_step("pp=3,tp=2", config, argv[1]);
    return failures == 0 ? 0 : 1;
  });
}
