// SPDX-License-Identifier: BSD-3-Clause
#include "detail/call_sites.hpp"

#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rankmesh::detail {
namespace {

// Without optimisation, the headers of rankmesh are functions of the program. They and the function
// that calls them are fewer than these.
constexpr std::size_t most_frames = 12;
// Further places of a program with more of them are not noted.
constexpr std::size_t most_sites = 4096;

}  // namespace

CallSites::CallSites(std::function<bool(const std::string&)> add_line)
    : add_line_{std::move(add_line)} {}

std::uint64_t CallSites::number_of_caller() {
  Stack stack = stack_of_program();
  const auto known = sites_.find(stack);
  if (known != sites_.end()) return known->second;
  if (sites_.size() == most_sites) return 0;
  const std::uint64_t number = add(stack);
  return sites_.emplace(std::move(stack), number).first->second;
}

// The functions of rankmesh's own libraries are left out.
CallSites::Stack CallSites::stack_of_program() {
  struct Walk {
    CallSites& sites;
    Stack stack{};
  } walk{*this};
  const auto add = [](_Unwind_Context* context, void* data) {
    auto& [sites, stack] = *static_cast<Walk*>(data);
    const std::uintptr_t address = _Unwind_GetIP(context);
    if (address == 0) return _URC_END_OF_STACK;
    const Module* const module = stack.empty() ? sites.module_of(address) : nullptr;
    if (module == nullptr || !module->is_rankmesh) stack.push_back(address);
    return stack.size() < most_frames ? _URC_NO_REASON : _URC_END_OF_STACK;
  };
  static_cast<void>(_Unwind_Backtrace(add, &walk));
  return std::move(walk.stack);
}

// Returns null if the address belongs to no file, for example to code that was made at run time.
const CallSites::Module* CallSites::module_of(std::uintptr_t address) {
  const auto has_it = [&](const Module& module) {
    return module.begin <= address && address < module.end;
  };
  auto found = std::ranges::find_if(modules_, has_it);
  if (found == modules_.end()) {  // the program may have loaded a library meanwhile
    modules_.clear();
    const auto add = [](dl_phdr_info* info, std::size_t, void* data) {
      Module module{
          .begin = UINTPTR_MAX, .end = 0, .bias = info->dlpi_addr, .path = info->dlpi_name};
      for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD) continue;
        const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
        module.begin = std::min(module.begin, begin);
        module.end = std::max(module.end, begin + segment.p_memsz);
      }
      std::error_code none;  // the program itself has no name here
      if (module.path.empty()) module.path = std::filesystem::read_symlink("/proc/self/exe", none);
      module.is_rankmesh =
          std::filesystem::path{module.path}.filename().string().starts_with("librankmesh");
      static_cast<std::vector<Module>*>(data)->push_back(std::move(module));
      return 0;
    };
    dl_iterate_phdr(add, &modules_);
    found = std::ranges::find_if(modules_, has_it);
  }
  return found == modules_.end() ? nullptr : &*found;
}

// Returns nothing if the path does not fit into the record.
std::optional<std::uint64_t> CallSites::line_of(const Module& module) {
  const auto known = file_lines_.find(module.path);
  if (known != file_lines_.end()) return known->second;
  const std::string path =
      nlohmann::json(module.path).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (!add_line_(fmt::format("{{\"file\":{}}}\n", path))) return std::nullopt;
  return file_lines_.emplace(module.path, file_lines_.size()).first->second;
}

std::uint64_t CallSites::add(const Stack& stack) {
  std::string frames;
  for (const std::uintptr_t address : stack) {
    const Module* const module = module_of(address);
    if (module == nullptr) continue;
    const auto line = line_of(*module);
    if (!line) return 0;
    // An address of return may be that of the next line.
    frames +=
        fmt::format("{}[{},{}]", frames.empty() ? "" : ",", *line, address - 1 - module->bias);
  }
  return add_line_(fmt::format("{{\"site\":[{}]}}\n", frames)) ? ++last_ : 0;
}

}  // namespace rankmesh::detail
