// SPDX-License-Identifier: BSD-3-Clause
// Checkpoints. A checkpoint has the elements of the whole model in the order of their numbers, so
// another mesh can continue: each rank writes and reads those that it has.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "model.hpp"

/// A line of text that describes the model, padded to `header` bytes; then the weights, and the two
/// means of AdamW. On clusters, all ranks must see the same file.
class Checkpoint {
 public:
  Checkpoint(const Config& config, std::int64_t steps, std::int64_t size)
      : config_{config}, steps_{steps}, size_{size} {}

  /// Collective over the mesh. An older checkpoint is replaced when the new one is complete.
  void write(const std::string& path, Model& model, const Groups& groups) const {
    const std::string unfinished = path + ".part";
    if (groups.mesh.rank() == 0) {
      std::ofstream file{unfinished, std::ios::binary};
      std::string line = describe() + " steps " + std::to_string(steps_);
      line.resize(header - 1, ' ');
      file << line << '\n';
      require(file, unfinished);
    }
    groups.world.barrier();  // the others open the file after it was created
    std::fstream file{unfinished, std::ios::binary | std::ios::in | std::ios::out};
    model.for_each_store([&](Store& store) {
      store.save([&](const Parameter& p, int state, In values) {
        const std::int64_t run = p.slice.size() * p.inner;  // elements that lie side by side
        for (std::int64_t first = 0; first < p.size(); first += run) {
          file.seekp(header + (state * size_ + p.number(first)) * std::int64_t{sizeof(Real)});
          file.write(reinterpret_cast<const char*>(&values[first]),
                     run * std::int64_t{sizeof(Real)});
        }
      });
    });
    file.close();
    require(file, unfinished);
    groups.world.barrier();  // all have written
    if (groups.mesh.rank() == 0) std::filesystem::rename(unfinished, path);
    groups.world.barrier();
  }

  /// Returns the number of steps of the model that was saved. Local.
  [[nodiscard]] std::int64_t read(const std::string& path, Model& model) const {
    std::ifstream file{path, std::ios::binary};
    std::string line(header, ' ');
    file.read(line.data(), header);
    Values all(3 * size_);
    file.read(reinterpret_cast<char*>(all.data()), std::ssize(all) * std::int64_t{sizeof(Real)});
    if (!file || line.find(describe() + " steps ") != 0)
      throw rankmesh::UsageError{path + " is no checkpoint of this model, which is: " + describe(),
                                 "remove it, or choose the options with which it was written"};
    model.for_each_store([&](Store& store) {
      store.load([&](const Parameter& p, std::int64_t i, int state) {
        return all[state * size_ + p.number(i)];
      });
    });
    return std::stoll(line.substr(describe().size() + 7));
  }

 private:
  static constexpr std::int64_t header = 256;

  [[nodiscard]] std::string describe() const {
    std::ostringstream text;
    text << "gpt " << sizeof(Real) << " bytes, layers " << config_.layers << " width "
         << config_.width << " heads " << config_.heads << " context " << config_.context
         << " experts " << config_.experts;
    return text.str();
  }
  static void require(const std::ios& file, const std::string& path) {
    if (!file) throw rankmesh::UsageError{"cannot write " + path, "choose another --checkpoint"};
  }

  Config config_;
  std::int64_t steps_, size_;
};
