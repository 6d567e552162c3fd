// SPDX-License-Identifier: BSD-3-Clause
// gpt_test gradients TEXT [FILE]: the arithmetic of examples/gpt, on one process. With FILE, it
// checks nothing, but writes the numbers of a training there (numbers.hpp). Otherwise:
//
// - The loss of the initial model is near ln(vocabulary), as that of GPT-2: it predicts nothing.
// - The gradient of elements of every parameter agrees with the difference of two losses.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "../../examples/gpt/trainer.hpp"
#include "modes.hpp"
#include "numbers.hpp"

namespace {

class Check {
 public:
  Check(Trainer& trainer, const char* model) : trainer_{trainer}, model_{model} {}

  // Compares a few elements of every parameter.
  void run() {
    trainer_.loss_and_gradients();
    std::map<Store*, std::vector<std::vector<Values>>> gradients;  // of each part and parameter
    trainer_.model().for_each_store([&](Store& store) {
      store.squares();  // waits for the gradients
      for (std::int64_t part = 0; part < std::ssize(store.parts()); ++part) {
        auto& copies = gradients[&store].emplace_back();
        for (const Out g : store.gradients(part)) copies.emplace_back(g.begin(), g.end());
      }
    });
    for (const auto& [store, of_parts] : gradients) compare_all(*store, of_parts);
  }

  int failures = 0, compared = 0;

 private:
  void compare_all(Store& store, const std::vector<std::vector<Values>>& gradients) {
    for (std::size_t part = 0; part < gradients.size(); ++part)
      for (std::size_t p = 0; p < gradients[part].size(); ++p) {
        const Values& gradient = gradients[part][p];
        const auto largest =
            std::ranges::max_element(gradient, {}, [](Real g) { return std::abs(g); });
        const std::int64_t n = std::ssize(gradient);
        for (const std::int64_t i : {std::int64_t{0}, n / 3, n - 1, largest - gradient.begin()})
          compare(store, static_cast<std::int64_t>(part), p, i, gradient[i]);
      }
  }

  void compare(Store& store, std::int64_t part, std::size_t p, std::int64_t i, Real gradient) {
    constexpr Real h = 1e-5;
    const double difference =
        (loss_with(store, part, p, i, h) - loss_with(store, part, p, i, -h)) / (2 * h);
    loss_with(store, part, p, i, 0);
    // The error of the difference is about h^2, and 1e-16 / h by rounding.
    const bool agrees = std::abs(difference - gradient) <= 1e-9 + 1e-6 * std::abs(gradient);
    if (!agrees)
      std::printf(
          "FAILED: %s, part %ld, parameter %zu, element %ld: gradient %.12g, difference %.12g\n",
          model_, static_cast<long>(part), p, static_cast<long>(i), gradient, difference);
    failures += agrees ? 0 : 1;
    ++compared;
  }
  // The loss if h is added to an element; the gradients are thrown away.
  double loss_with(Store& store, std::int64_t part, std::size_t p, std::int64_t i, Real h) {
    std::vector<Replicas::State> states(store.parts()[part].size());
    for (int s = 0; s < 3; ++s) {
      const std::vector<Values> values = store.state(part, s);
      for (std::size_t k = 0; k < values.size(); ++k) states[k][s] = values[k];
    }
    states[p][0][i] += h;
    store.load(part, states);
    const double loss = trainer_.loss_and_gradients();
    trainer_.model().for_each_store([](Store& of) { of.squares(); });  // ends the round
    states[p][0][i] -= h;
    store.load(part, states);
    return loss;
  }

  Trainer& trainer_;
  const char* model_;
};

int compare_gradients(const char* model, const char* text, Config config) {
  Mesh mesh{MPI_COMM_SELF, complete("dp=1")};
  int failures = 0;
  {
    Groups groups{mesh};
    Trainer trainer{config, groups, text};
    const double initial_loss = trainer.step();
    const double expected = std::log(static_cast<double>(config.vocabulary));
    if (!(std::abs(initial_loss - expected) < 0.005 * expected)) {
      std::printf("FAILED: %s: the initial loss is %g instead of ln(%ld)\n", model, initial_loss,
                  static_cast<long>(config.vocabulary));
      ++failures;
    }
    for (int i = 0; i < 3; ++i) trainer.step();  // so that no parameter is zero
    Check check{trainer, model};
    check.run();
    failures += check.failures;
    std::printf("%s: initial loss %.4f, %d gradients compared\n", model, initial_loss,
                check.compared);
  }
  mesh.close();
  return failures;
}

}  // namespace

int gradients(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] {
    if (argc == 3) {
      numbers::write_numbers(argv[1], argv[2]);
      return 0;
    }
    if (argc != 2) return 2;
    Config config{.layers = 2, .width = 12, .heads = 3, .context = 10, .batch = 2};
    const int failures = compare_gradients("with MLPs", argv[1], config);
    config.experts = 4;
    return failures + compare_gradients("with experts", argv[1], config) == 0 ? 0 : 1;
  });
}
