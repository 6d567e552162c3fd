// SPDX-License-Identifier: BSD-3-Clause
// The log, in the formats of src/init.cc, src/bootstrap.cc and
// src/transport/{net_socket,nvls,shm}.cc of NCCL 2.28.9; src/debug.cc expands the name of the file.
#include "log.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "common/settings.hpp"

namespace fake {
namespace {

std::string expanded(const std::string& name) {
  std::string result;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%' || i + 1 == name.size()) {
      result += name[i];
      continue;
    }
    const char which = name[++i];
    result += which == 'p'   ? std::to_string(getpid())
              : which == 'h' ? std::string(host)
                             : std::string(1, which);
  }
  return result;
}

}  // namespace

void write_log(int rank, int device) {
  static std::once_flag once;
  std::call_once(once, [&] {
    const auto file = setting("NCCL_DEBUG_FILE");
    if (setting("NCCL_DEBUG").value_or("") != "INFO" || !file) return;
    std::FILE* out = std::fopen(expanded(*file).c_str(), "w");
    if (out == nullptr) return;
    const auto line = [&](const std::string& text) {
      std::fprintf(out, "fake:%d:%d [%d] NCCL INFO %s\n", getpid(), getpid(), device, text.c_str());
    };
    const std::string own = setting("FAKE_NCCL_INTERFACE").value_or("lo") + ":127.0.0.1<0>";
    line("Bootstrap: Using " + own);
    line("NET/Socket : Using [0]" + own);
    line("Using network Socket");
    line("NVLS multicast support is not available on dev " + std::to_string(device));
    line("Channel 00 : " + std::to_string(rank) + "[0] -> " + std::to_string(rank ^ 1) +
         "[1] via SHM/direct/direct");
    std::fclose(out);
  });
}

}  // namespace fake
