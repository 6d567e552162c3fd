// SPDX-License-Identifier: BSD-3-Clause
// The time of a step.
#include <algorithm>
#include <numeric>

#include "place/detail/objective.hpp"
#include "search/cost.hpp"

namespace rankmesh::search {

std::vector<std::pair<std::string_view, double>> StepTime::terms() const {
  return {{"products", products},
          {"memory", memory},
          {"tp", tp},
          {"cp", cp},
          {"ep", ep},
          {"pp", pp},
          {"dp", dp},
          {"bubble", bubble},
          {"optimizer", optimizer}};
}

CostModel::CostModel(const ModelFigures& model, const DeviceFigures& device, const Machine& machine,
                     const Software& software, const Margins& margins)
    : model_{model},
      shape_{model, software.keeping},
      device_{device},
      machine_{machine},
      software_{software},
      margins_{margins} {
  model_.activation_bytes = software.activation_bytes;
  model_.parameter_bytes = model_.activation_bytes;
  model_.gathers = 2;  // of a microbatch; time() counts the microbatches
  model_.gradient_bytes = software.precision == "fp16" ? 2 : 4;
  const bool is_fp8 = software.precision == "fp8";
  peak_ = is_fp8 && device.flops_fp8 > 0 ? device.flops_fp8
          : software.precision == "fp32" ? device.flops / 16
                                         : device.flops;
  saved_of_inputs_ = is_fp8 ? 0.5 : 0;
}

// Sets the figures of the step that estimate() needs.
void CostModel::use(const MeshSettings& s) const {
  ranks_ = s.ranks();
  model_.batch = s.micro_batch;
  model_.microbatches = s.microbatches;
  model_.virtual_stages = s.virtual_stages;
  model_.sequence_parallel = s.sequence_parallel;
  model_.full_recomputation = s.recompute == Recompute::full;
  model_.optimizer = s.zero == 0   ? OptimizerSharing::replicated
                     : s.zero == 3 ? OptimizerSharing::fsdp
                                   : OptimizerSharing::distributed;
}

// The members of a group lie `stride` slots apart, and groups follow one another. A group whose
// slots are neither a part nor a multiple of a unit begins inside one, so it touches one unit more.
// Where units are equal, the result is never too small, and rarely one too large, for odd sizes.
std::int64_t CostModel::most_units(std::size_t level, std::int64_t size,
                                   std::int64_t stride) const {
  const std::int64_t capacity = machine_.largest(level), slots = std::min(size * stride, ranks_);
  const bool is_even =  // all units, or all but the last
      machine_.levels()[level].size > 0 || machine_.smallest(level) == capacity;
  const std::int64_t step = is_even ? std::gcd(size * stride, capacity) : std::int64_t{1};
  const std::int64_t begin = std::clamp<std::int64_t>(ranks_ - slots, 0, capacity - step);
  const std::int64_t first = std::min(capacity, begin + stride) - 1;
  const std::int64_t last = std::min(first + (size - 1) * stride, ranks_ - 1);
  if (last < capacity) return 1;
  const std::int64_t next = is_even ? capacity : machine_.smallest(level);
  return std::min(size, 1 + (last - capacity) / next + 1);
}

// On each level the bytes that leave its units share the bandwidth of all slots (bytes_between());
// the slowest level decides.
double CostModel::seconds(Pattern pattern, double bytes, std::int64_t size, std::int64_t stride,
                          double calls, double most_between_nodes) const {
  if (size < 2 || bytes <= 0) return 0;
  double most = bytes / (device_.node_bandwidth * device_.node_efficiency);
  double latency = device_.node_latency;
  for (std::size_t l = 0; l < machine_.levels().size(); ++l) {
    const MachineLevel& level = machine_.levels()[l];
    const std::int64_t units = most_units(l, size, stride);
    if (units < 2) continue;
    const std::int64_t inside = size / units, rest = size % units;  // of `rest` units one more
    const std::int64_t squares =
        rest * (inside + 1) * (inside + 1) + (units - rest) * inside * inside;
    const bool is_outside = l <= std::min(machine_.node_level(), machine_.fast_level());
    const double bandwidth = level.bandwidth.value_or(
        (is_outside ? device_.network_bandwidth * device_.network_efficiency
                    : device_.node_bandwidth * device_.node_efficiency));
    const auto leaving = static_cast<double>(detail::bytes_between(
                             pattern, static_cast<std::int64_t>(bytes),
                             is_outside ? static_cast<std::int64_t>(most_between_nodes) : 0, size,
                             {units, squares, units - 1})) /
                         static_cast<double>(size);
    most = std::max(most, leaving / bandwidth);
    latency = std::max(latency, level.latency.value_or(is_outside ? device_.network_latency
                                                                  : device_.node_latency));
  }
  return most + calls * latency;
}

double CostModel::rate() const { return peak_ * device_.product_efficiency; }

// One pass forward. A product takes a fixed time, and then as long as its operations.
double CostModel::products_time(const MeshSettings& s, const LayerShape& layer) const {
  double time = 0;
  for (const double weight : layer.products)
    time += 2 * tokens(s) * weight / s.tp / rate() + device_.product_latency;
  const double visits = tokens(s) / s.tp * static_cast<double>(model_.experts_per_token);
  for (const double weight : layer.per_expert)
    time += 2 * visits * weight / rate() + device_.product_latency;
  return time;
}

// Seconds of one layer and microbatch, forward and backward.
struct CostModel::LayerTime {
  double products = 0, memory = 0, attention = 0;
};

// A backward pass takes twice the time of a forward pass. Each tensor that is kept is written once
// and read once.
CostModel::LayerTime CostModel::layer_time(const MeshSettings& s, const LayerShape& layer) const {
  const bool flash = software_.has_flash_attention;
  const double core = 4 * tokens(s) * static_cast<double>(model_.sequence) * shape_.query_width /
                      s.tp * (flash ? 0.5 : 1) /
                      (device_.flops * (flash ? software_.attention : device_.product_efficiency));
  const double moving = device_.memory_bandwidth * device_.memory_efficiency;
  const double moved = 2 * kept_by_layer(s, layer, Recompute::none) / moving;
  const double scores = flash ? 0 : tokens(s) * shape_.scores / s.tp;
  // Selective recomputation repeats the attention; where it has no scores, what moves.
  const double passes = s.recompute == Recompute::full ? 4 : 3;
  const double again = s.recompute == Recompute::none ? 3 : 4;
  const double core_passes = flash ? passes : again;
  const double repeated = flash && s.recompute == Recompute::selective
                              ? 2 * tokens(s) * layer.repeated / s.tp / rate()
                              : 0;
  return {passes * products_time(s, layer) + repeated + core_passes * core,
          ((flash ? again : passes) * (moved - 2 * scores / moving) +
           core_passes * 2 * scores / moving),
          core_passes * core};
}

// Gradients and parameters of the replicas, for the stage with the most.
double CostModel::data_seconds(const MeshSettings& s, double parameters, double experts) const {
  const std::int64_t replicas = std::int64_t{1} * s.dp * s.cp;
  const std::int64_t expert_replicas = std::max<std::int64_t>(1, replicas * s.tp / s.ep);
  const auto of = [&](double held, std::int64_t d, std::int64_t stride) {
    const double bytes =
        static_cast<double>(data_bytes(model_, static_cast<std::int64_t>(held), 1, d));
    return seconds(Pattern::ring, bytes, d, stride, 2);
  };
  return of(parameters, replicas, s.tp) + of(experts, expert_replicas, s.ep);
}

// What the messages of tp add to a layer. With sequence parallelism a product and the collective
// beside it run in t parts, so that all but the first overlap; each part takes the latency of a
// product (Megatron-LM, --tp-comm-overlap). The parts are copied inside a node, so a group that
// leaves it waits for the whole. Two fifths of the collectives are in the forward pass.
double CostModel::exposed_tensor(const MeshSettings& s, const LayerShape& layer,
                                 double whole) const {
  const bool is_far = most_units(machine_.fast_level(), s.tp, 1) > 1;
  if (!software_.overlaps || !s.sequence_parallel || is_far || layer.products.empty()) return whole;
  const double passes = s.recompute == Recompute::full ? 2 : 1;  // forward
  const double of_product = whole / static_cast<double>(layer.products.size());
  const double forward = of_product * 2 / (2 * passes + 3),
               backward = of_product * 3 / (2 * passes + 3);
  double exposed = 0;
  for (const double weight : layer.products) {
    const double time = 2 * tokens(s) * weight / s.tp / rate() / margins_.efficiency;
    exposed += passes * std::max(forward / s.tp, forward - time) +
               std::max(backward / s.tp, backward - 2 * time) +
               (passes + 2) * (s.tp - 1) * device_.product_latency;
  }
  return std::min(whole, exposed);
}

StepTime CostModel::time(const MeshSettings& s) const {
  use(s);
  const MeshSizes sizes{.t = s.tp, .p = s.pp, .c = s.cp, .e = s.ep};
  const LayerTime dense = layer_time(s, shape_.dense), sparse = layer_time(s, shape_.sparse);
  const double moving = device_.memory_bandwidth * device_.memory_efficiency;
  const double loss_products =
      3 * (2 * tokens(s) * shape_.embedding / s.tp / (device_.flops * device_.product_efficiency));
  const double loss_memory =
      2 * tokens(s) * 10 * static_cast<double>(model_.vocabulary) / s.tp / moving;
  const double m = s.microbatches;
  // Per layer and microbatch, as the mean over the stages.
  const double layers = static_cast<double>(model_.layers);
  const double expert_layers = static_cast<double>(model_.expert_layers);
  const double sparse_layers = std::max(1.0, expert_layers);
  const double share = s.pp / (m * layers);
  const double blocks = s.recompute == Recompute::full ? 12 : 8;
  const double tp = share * seconds(Pattern::ring, static_cast<double>(tensor_bytes(model_, sizes)),
                                    s.tp, 1, blocks * m * (layers - expert_layers / 2) / s.pp);
  const double cp =
      share * seconds(Pattern::ring, static_cast<double>(context_bytes(model_, sizes)), s.cp, s.tp,
                      3 * m * layers / s.pp);
  const double ep = share * layers / sparse_layers *
                    seconds(Pattern::all_to_all, static_cast<double>(expert_bytes(model_, sizes)),
                            s.ep, 1, 4 * m * sparse_layers / s.pp,
                            static_cast<double>(expert_bytes_between_nodes(model_, sizes)));
  // The slowest stage sets the pace.
  StepTime pace;
  double most_parameters = 0, most_experts = 0;
  double slowest = -1;
  for (const StageShape& stage : stages_of(s)) {
    const double d = static_cast<double>(stage.dense), e = static_cast<double>(stage.sparse);
    const double exposed =
        d * exposed_tensor(s, shape_.dense, tp) + e * exposed_tensor(s, shape_.sparse, tp);
    StepTime one{.products = (d * dense.products + e * sparse.products) / margins_.efficiency,
                 .memory = (d * dense.memory + e * sparse.memory) / margins_.efficiency,
                 .tp = exposed,
                 .cp = std::max(0.0, (d + e) * cp - (d * dense.attention + e * sparse.attention) /
                                                        margins_.efficiency),
                 .ep = e * ep};
    if (stage.has_loss) {
      one.products += loss_products / margins_.efficiency;
      one.memory += loss_memory / margins_.efficiency;
    }
    if (one.total() > slowest) slowest = one.total(), pace = one;
    const double ends =
        (stage.has_embedding ? 1 : 0) + (stage.has_loss && !model_.tied_embedding ? 1 : 0);
    most_parameters = std::max(
        most_parameters,
        (d * shape_.dense.divided + e * shape_.sparse.divided + ends * shape_.embedding) / s.tp);
    most_experts = std::max(most_experts, e * shape_.sparse.expert / s.ep);
  }
  StepTime step = pace;
  for (double* term : {&step.products, &step.memory, &step.tp, &step.cp, &step.ep}) *term *= m;
  step.bubble = (s.pp - 1) * slowest / s.virtual_stages;
  // Two directions. In the steady state of an interleaved schedule they are hidden. Some stages
  // lie on both sides of the middle of the mesh, so the slowest link is that between its halves.
  const double links =
      2 * seconds(Pattern::chain, static_cast<double>(pipeline_bytes(model_, sizes)), 2,
                  (s.ranks() + 1) / 2, m * s.virtual_stages);
  const double of_chunk = links / (m * s.virtual_stages);
  step.pp = s.pp == 1            ? 0
            : software_.overlaps ? std::min(links, 2.0 * (s.pp - 1) * of_chunk)
                                 : links;
  const double data = data_seconds(s, most_parameters, most_experts);
  if (s.zero == 3 && s.pp == 1)  // each microbatch gathers twice and reduces once
    step.dp = m * (software_.overlaps ? std::max(0.0, data - slowest) : data);
  else
    step.dp = software_.overlaps ? std::max(0.0, data - slowest) : data;
  const double divided = s.zero == 0 ? 1 : static_cast<double>(s.dp) * s.cp;
  step.optimizer = 2 * (software_.states.optimizer + software_.states.gradient) *
                   (most_parameters / divided +
                    most_experts / (s.zero == 0 ? 1 : std::max(1.0, divided * s.tp / s.ep))) /
                   moving / margins_.efficiency;
  return step;
}

}  // namespace rankmesh::search
